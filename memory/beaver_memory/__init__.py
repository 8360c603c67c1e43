"""The memory engine as a library: adds, searches and forgets memories, without any host.

`engine` is the engine, `records`, `filters` and `query` are its inputs and outputs, `store` keeps memories, `search`
finds and ranks them, `embedding` turns texts into vectors.
"""
