"""Building blocks that several methods of disorder control share."""
