"""The data of one person, exported and erased in all plugins and in the host."""
