"""Laws of load shedding, one per file."""
