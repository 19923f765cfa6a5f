"""What the `slackwater` command runs on Spark."""
