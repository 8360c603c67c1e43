"""The audit trail: chained records of events, the receipts of turns and the health of plugins.

Import from the modules: `events` (the record and the sink), `memory_sink` (a sink that keeps events in a list),
`trail` (the default sink, one SQLite file), `reader` (read access to the same file), `chain` (the codes that bind
each record to the one before it).
"""
