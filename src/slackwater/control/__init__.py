"""The control plane: observations in, decisions out. No Spark, no clock, no thread, no I/O."""
