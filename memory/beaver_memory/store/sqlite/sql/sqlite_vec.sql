-- Tables of the extension sqlite-vec: one for each model, `{table}`. A unit is the number of a memory's row, then that of
-- a passage in its last 16 bits; callers name units by the id of the memory instead. The numbers of owners are unique in
-- the file, so an owner's number names its tenant, too.

-- name: make_marks
CREATE TABLE IF NOT EXISTS observations_vec_marks (
    name TEXT, owner INTEGER, version INTEGER NOT NULL, PRIMARY KEY (name, owner)
) STRICT, WITHOUT ROWID

-- name: make_table
CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING vec0 (
    unit INTEGER PRIMARY KEY, owner INTEGER PARTITION KEY, embedding FLOAT[{dimensions}] DISTANCE_METRIC=cosine
)

-- name: tables
SELECT name FROM sqlite_schema WHERE name GLOB 'observations_vec_*' AND sql GLOB 'CREATE VIRTUAL TABLE *'

-- name: mark
SELECT version FROM observations_vec_marks WHERE name = ? AND owner = ?

-- name: set_mark
INSERT OR REPLACE INTO observations_vec_marks VALUES (?, ?, ?)

-- name: drop_marks
DELETE FROM observations_vec_marks WHERE name = ?

-- name: units
SELECT rowid FROM {table}_rowids WHERE rowid >= ? AND rowid < ?

-- name: add_unit
INSERT INTO {table} (unit, owner, embedding) VALUES (?, ?, ?)

-- name: drop_unit
DELETE FROM {table} WHERE unit = ?

-- name: empty_shadow
DELETE FROM {table}_{shadow}

-- name: nearest_units
SELECT (o.id << 16) | (n.unit & 65535)
FROM (SELECT unit, distance FROM {table} WHERE embedding MATCH ? AND k = ? AND owner = ?) AS n
CROSS JOIN observations AS o ON o.row = n.unit >> 16
WHERE o.tenant = ?
ORDER BY n.distance

-- name: nearest_among
SELECT (o.id << 16) | (n.unit & 65535)
FROM (
    SELECT unit, distance
    FROM {table}
    WHERE embedding MATCH ? AND k = ? AND owner = ? AND unit IN (
        SELECT (m.row << 16) | (j.value & 65535)
        FROM json_each(?) AS j
        CROSS JOIN observations AS m ON m.tenant = ? AND m.id = j.value >> 16
    )
) AS n
CROSS JOIN observations AS o ON o.row = n.unit >> 16
WHERE o.tenant = ?
ORDER BY n.distance
