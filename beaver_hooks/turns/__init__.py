"""What happens to a turn: hooks are called, answers put together, background work done, turns closed."""
