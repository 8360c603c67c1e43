-- Reads of visible memories. `{conditions}` are the filters, built by `sql_filters.py`, and `{columns}` those that
-- `rows.memory_of` reads.

-- name: memories_by_id
-- By id, instead of through an owner's memories.
SELECT {columns}
FROM json_each(?) AS j
CROSS JOIN observations AS o INDEXED BY observations_by_id ON o.tenant = ? AND o.id = j.value
WHERE o.owner IN ({owners}) AND {conditions}

-- name: damaged_among
-- Whatever the columns say, a row that fails its checksum is noticed.
SELECT o.id
FROM json_each(?) AS j
CROSS JOIN observations AS o INDEXED BY observations_by_id ON o.tenant = ? AND o.id = j.value
WHERE {fails}

-- name: moment_in_index
-- The index gives the moment, whatever the row says.
SELECT o.created_at
FROM observations AS o INDEXED BY observations_by_time
WHERE o.tenant = ? AND o.owner = ? AND o.deleted_at IS NULL AND o.id = ?

-- name: walk_by_time
-- An index gives the order of time for any condition: SQLite sorts nothing, and ends as soon as it has enough rows.
SELECT {columns}
FROM observations AS o INDEXED BY observations_by_time
WHERE o.tenant = ? AND o.owner = ? AND o.deleted_at IS NULL AND ({conditions} OR {doubtful}) {bounds}
ORDER BY o.created_at {order}, o.id {order}
LIMIT ?

-- name: walk_by_label
SELECT {columns}
FROM observation_labels AS l
CROSS JOIN observations AS o ON o.tenant = l.tenant AND o.id = l.memory
WHERE l.tenant = ? AND l.owner = ? AND l.label = ? AND ((o.owner = l.owner AND {conditions}) OR {fails}) {bounds}
ORDER BY l.created_at {order}, l.memory {order}
LIMIT ?

-- name: created_at
SELECT created_at FROM observations WHERE tenant = ? AND id = ?

-- name: added_at
SELECT added_at FROM observations WHERE tenant = ? AND id = ?

-- name: history
SELECT CAST(event AS BLOB), at, CAST(old AS BLOB), CAST(new AS BLOB), checksum FROM observation_history WHERE tenant = ? AND memory = ? ORDER BY row DESC

-- name: doubtful
-- What lets a walk read a row that does not fit the filters: it may be damaged. Rows of hidden stores are not verified, as
-- a reader who may see few of many memories would wait for all of them.
o.store NOT IN ('private', 'shared', 'social') OR o.scope NOT IN ('session', 'project', 'global')
OR (o.store IN ({stores}) AND {fails})
