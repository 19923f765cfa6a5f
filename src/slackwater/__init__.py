"""Promises for Spark streams."""

from slackwater.errors import SlackwaterError

__all__ = ["SlackwaterError", "__version__"]

__version__ = "0.1.0"
