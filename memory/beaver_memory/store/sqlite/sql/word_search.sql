-- The search for phrases and prefixes, newest first.

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
