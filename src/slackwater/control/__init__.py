"""The control plane: pure functions of observations. It uses no Spark, no clock, no thread and no I/O."""
