"""The timeliness promise on Spark: `with_max_delay`, its shed ratio and corrected estimates."""
