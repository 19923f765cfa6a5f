"""Methods of disorder control, one per file."""
