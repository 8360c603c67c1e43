-- Reads of visible memories. `{conditions}` are the filters, built by `sql_filters.py`, and `{columns}` those that
-- `rows.memory_of` reads.

-- name: memories_by_id
-- By id, instead of through an owner's memories.
SELECT {columns}
FROM json_each(?) AS j
CROSS JOIN observations AS o INDEXED BY observations_by_id ON o.tenant = ? AND o.id = j.value
WHERE o.owner IN ({owners}) AND {conditions}

-- name: walk_by_time
-- An index gives the order of time for any condition: SQLite sorts nothing, and ends as soon as it has enough rows.
SELECT {columns}
FROM observations AS o INDEXED BY observations_by_time
WHERE o.tenant = ? AND o.owner = ? AND {conditions} {bounds}
ORDER BY o.created_at {order}, o.id {order}
LIMIT ?

-- name: walk_by_label
SELECT {columns}
FROM observation_labels AS l
CROSS JOIN observations AS o ON o.tenant = l.tenant AND o.id = l.memory
WHERE l.tenant = ? AND l.owner = ? AND l.label = ? AND o.owner = l.owner AND {conditions} {bounds}
ORDER BY l.created_at {order}, l.memory {order}
LIMIT ?

-- name: created_at
SELECT created_at FROM observations WHERE tenant = ? AND id = ?

-- name: added_at
SELECT added_at FROM observations WHERE tenant = ? AND id = ?

-- name: history
SELECT event, at, old, new FROM observation_history WHERE tenant = ? AND memory = ? ORDER BY row DESC
