"""The command: one file a verb."""
