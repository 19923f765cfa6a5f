"""The default method, ``budgeted-quantile``, and its parts."""
