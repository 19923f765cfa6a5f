"""Code that Spark's Python workers import, and nothing else."""
