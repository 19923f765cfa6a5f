"""The data plane's edge: the only package that imports pyspark."""
