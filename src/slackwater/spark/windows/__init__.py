"""Windowed queries on Spark: ``sql``, ``window``, ``ordered``, late rows and reconciliation."""
