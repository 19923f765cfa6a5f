"""Vectorised numpy code that runs inside Spark tasks: windows and standing queries. It does not import Spark."""
