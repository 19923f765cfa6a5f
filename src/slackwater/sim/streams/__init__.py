"""Generated streams: those of the papers, and difficult ones. Each is a function of a seed."""

from slackwater.sim.streams.registry import make_stream, stream, stream_names

__all__ = ["make_stream", "stream", "stream_names"]
