"""The ``slackwater`` command, one file per verb."""
