"""Vectorised kernels: what a task runs on its shard, without Spark."""
