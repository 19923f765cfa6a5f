"""The laboratory: streams made to order, a virtual clock, and the very controllers that run beside Spark."""
