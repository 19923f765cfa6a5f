"""Standing queries in one shard: weights, estimates, evaluation and state."""
