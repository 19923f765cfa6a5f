"""The papers behind Slackwater, one folder each: their experiments, runnable by one command."""
