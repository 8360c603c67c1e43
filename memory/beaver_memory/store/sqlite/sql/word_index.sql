-- The word index (FTS5). It names memories by their rows.

-- name: last_added
SELECT coalesce(max(row), 0) FROM observations

-- name: last_indexed
SELECT last FROM indexed_words

-- name: set_last_indexed
UPDATE indexed_words SET last = ?

-- name: row_of
SELECT row FROM observations WHERE tenant = ? AND id = ?

-- name: add_rows
INSERT INTO observations_fts (rowid, title, narrative, facts, tags, keywords, people)
SELECT row, title, narrative, facts, tags, keywords, people
FROM observation_texts
WHERE row BETWEEN ? AND ?

-- name: add_words
INSERT INTO observations_fts (rowid, title, narrative, facts, tags, keywords, people)
SELECT row, title, narrative, facts, tags, keywords, people
FROM observation_texts
WHERE tenant = ? AND id = ?

-- name: drop_words
INSERT INTO observations_fts (observations_fts, rowid, title, narrative, facts, tags, keywords, people)
SELECT 'delete', row, title, narrative, facts, tags, keywords, people
FROM observation_texts
WHERE tenant = ? AND id = ?

-- name: unused_words
SELECT value
FROM json_each(?) AS w
WHERE NOT EXISTS (SELECT 1 FROM observation_words AS o WHERE o.term = w.value)

-- name: page_beginnings
SELECT term FROM observations_fts_idx

-- name: rebuild_words
INSERT INTO observations_fts (observations_fts) VALUES ('rebuild')

-- name: compare_words
INSERT INTO observations_fts (observations_fts, rank) VALUES ('integrity-check', 1)
