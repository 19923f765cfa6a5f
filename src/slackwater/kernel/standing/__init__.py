"""The precision promise for one shard: weights, stream estimates, evaluation and state."""
