-- Rows of memories, found in the indexes alone. Only `read_row` reads a row.

-- name: rows_of_owner
SELECT row FROM observations INDEXED BY observations_by_version WHERE tenant = ? AND owner = ?

-- name: row_of
SELECT row FROM observations INDEXED BY observations_by_id WHERE tenant = ? AND id = ?

-- name: id_of_row
SELECT id FROM observations INDEXED BY observations_by_id WHERE tenant = ? AND row = ?

-- name: read_row
SELECT * FROM observations WHERE row = ?
