"""The completeness promise on Spark: `with_drop_ratio`, the heartbeat stream and the control row."""
