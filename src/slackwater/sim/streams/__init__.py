"""Streams made to order: the papers' own and the ones that hurt. One concept a file, each a function of a seed."""

from slackwater.sim.streams.registry import make_stream, stream, stream_names

__all__ = ["make_stream", "stream", "stream_names"]
