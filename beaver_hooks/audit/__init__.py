"""The audit trail: what happened, chained; the receipts of turns; the health of plugins.

Import what you need from the modules: `events` (the record and the sink), `memory` (a sink that keeps events
in a list), `trail` (the default sink, one SQLite file), `reading` (the same file for those who only look),
`chain` (how records are bound to each other).
"""
