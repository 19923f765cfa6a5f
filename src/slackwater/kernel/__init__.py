"""Vectorised kernels that a task runs on its shard; they know nothing of Spark."""
