-- Rows of an owner, to be compared with their checksums. Texts come as bytes: one that is not UTF-8 fails no statement.

-- name: rows_of_owner
SELECT row FROM observations INDEXED BY observations_by_version WHERE tenant = ? AND owner = ?

-- name: id_of_row
SELECT id FROM observations INDEXED BY observations_by_id WHERE tenant = ? AND row = ?

-- name: row
-- `{columns}` are those that `rows.verify` compares.
SELECT {columns} FROM observations AS o WHERE o.row = ?

-- name: column
SELECT {column} FROM observations WHERE row = ?

-- name: embeddings
SELECT e.memory, m.name, e.data, e.checksum
FROM observation_embeddings AS e
JOIN models AS m ON m.id = e.model
WHERE e.tenant = ?

-- name: changes
SELECT memory, CAST(event AS BLOB), at, CAST(old AS BLOB), CAST(new AS BLOB), checksum
FROM observation_history
WHERE tenant = ?

-- name: people
SELECT CAST(folded AS BLOB), CAST(name AS BLOB), CAST(aliases AS BLOB), mention_count, checksum
FROM people
WHERE tenant = ? AND owner = ?

-- name: summaries
SELECT CAST(agent AS BLOB), CAST(session AS BLOB), CAST(request AS BLOB), CAST(outcome AS BLOB),
    CAST(decisions AS BLOB), CAST(open_items AS BLOB), observation_count, created_at, checksum
FROM session_summaries
WHERE tenant = ? AND owner = ?
