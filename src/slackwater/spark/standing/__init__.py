"""The precision promise on Spark: standing queries from Python and from text."""
