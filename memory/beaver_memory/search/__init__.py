"""What makes recall fast: caches of the store, rebuilt whenever they cannot be trusted."""
