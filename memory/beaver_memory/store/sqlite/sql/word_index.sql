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

-- name: matching
-- In the word index (FTS5).
SELECT o.id
FROM observations_fts
CROSS JOIN observations AS o ON o.row = observations_fts.rowid
WHERE observations_fts MATCH ? AND o.tenant = ? AND ((o.owner IN ({owners}) AND {conditions}) OR {fails})
ORDER BY o.created_at DESC, o.id DESC
LIMIT ?

-- name: matching_text
-- By reading the texts: the word index takes a run of characters without spaces for one word.
SELECT o.id
FROM observations AS o INDEXED BY observations_by_time
WHERE o.tenant = ? AND o.owner IN ({owners}) AND {conditions}
ORDER BY o.created_at DESC, o.id DESC
LIMIT ?

-- name: holds_text
instr(o.title || ' ' || o.narrative || ' ' || o.facts || ' ' || o.tags || ' ' || o.keywords || ' ' || o.related_people, ?)
