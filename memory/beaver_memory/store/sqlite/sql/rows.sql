-- Rows of memories. `fails` is a condition on `observations AS o`; the others find rows in the indexes alone, and only
-- `read_row` reads a row.

-- name: fails
-- `{columns}` are those of the checksum.
found_sum(
    (SELECT t.name FROM tenants AS t WHERE t.number = o.tenant),
    (SELECT w.user FROM owners AS w WHERE w.tenant = o.tenant AND w.number = o.owner),
    (SELECT w.kind FROM owners AS w WHERE w.tenant = o.tenant AND w.number = o.owner),
    {columns}
) IS NOT o.checksum

-- name: rows_of_owner
SELECT row FROM observations INDEXED BY observations_by_version WHERE tenant = ? AND owner = ?

-- name: row_of
SELECT row FROM observations INDEXED BY observations_by_id WHERE tenant = ? AND id = ?

-- name: id_of_row
SELECT id FROM observations INDEXED BY observations_by_id WHERE tenant = ? AND row = ?

-- name: read_row
SELECT * FROM observations WHERE row = ?
