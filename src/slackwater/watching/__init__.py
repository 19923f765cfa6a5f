"""What people see of a promise: its series, kept beside the checkpoint, and the report, metrics and page made from it.

It knows no Spark: the listener feeds it, and whoever looks may be a process of its own. (``slackwater.watch`` is
the function that opens the page; hence this name.)
"""
