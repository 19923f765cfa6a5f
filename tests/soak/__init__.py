"""Random faults while promises are kept: ``python -m tests.soak``, or ``make soak``.

A seed draws the steps. In each step files of rows arrive, something breaks, and every query reads on to the end. Then
its results, its ledger and its heartbeats are compared with what the rows and Spark's own checkpoint say.
"""
