"""The engine in the hands of a host: who may see what, threads, what is done beside turns, and what is wrong."""
