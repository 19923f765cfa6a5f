"""The laboratory: generated and recorded streams, run by the same controllers as beside Spark, on a virtual clock."""
