"""What of memory goes into a turn: recalled references, and the list of what there is."""
