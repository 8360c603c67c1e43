-- The search in the word index (FTS5).

-- name: search_words
SELECT o.id, bm25(observations_fts) AS score
FROM observations_fts
CROSS JOIN observations AS o ON o.id = observations_fts.rowid
WHERE observations_fts MATCH ? AND o.owner IN ({owners}) AND {conditions}
ORDER BY score, o.created_at DESC, o.id DESC
LIMIT ?
