"""Default TCP ports of the live page and of the metrics endpoint."""

DEFAULT_PAGE_PORT = 4141
DEFAULT_METRICS_PORT = 9464
