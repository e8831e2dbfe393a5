"""``slipstream bench run``: every policy, every workload, one engine, one run."""
