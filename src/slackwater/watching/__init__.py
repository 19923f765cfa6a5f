"""The history of promises, and what is made from it: report, metrics and live page.

The history of a promise is a ``Series``, written to a file beside the checkpoint. This package does not import Spark:
the listener writes the series, and another process may read them. (The package is not called ``watch``, because
``slackwater.watch`` is the function that opens the page.)
"""
