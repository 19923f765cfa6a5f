"""What every promise shares: the listener, the handler interface, series, locations and reports."""
