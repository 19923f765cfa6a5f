"""The parts of the ``slackwater`` command that use Spark: session, sources, sinks, ``run``, ``demo``, ``advise``."""
