-- New memories with their labels, and the people whom memories mention.

-- name: add_memory
-- `rows.new_row` gives the values, in this order.
INSERT INTO observations (
    owner, version, store, type, scope, project, session, agent, source, speaker, origin, pinned, confidence,
    importance, created_at, expires_at, valid_from, valid_until, added_at, updated_at, token_count, hash, length,
    terms, tags, keywords, related_files, related_people, title, summary, facts, narrative
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: queue_embeddings
INSERT INTO unembedded
SELECT m.id, o.owner, o.created_at, o.id
FROM models AS m
CROSS JOIN observations AS o
WHERE o.id BETWEEN ? AND ?

-- name: count_live
UPDATE owners SET live = live + ? WHERE id = ?

-- name: add_label
INSERT OR IGNORE INTO observation_labels (owner, label, created_at, memory) VALUES (?, ?, ?, ?)

-- name: drop_label
DELETE FROM observation_labels WHERE owner = ? AND label = ? AND created_at = ? AND memory = ?

-- name: mention_person
INSERT INTO people (owner, folded, name, mention_count, last_mentioned)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    mention_count = mention_count + excluded.mention_count,
    last_mentioned = max(last_mentioned, excluded.last_mentioned)

-- name: count_mentions
INSERT INTO people (owner, folded, name, mention_count, last_mentioned)
SELECT ?1, ?2, ?3, count(*), max(created_at)
FROM observation_labels
WHERE owner = ?1 AND label = ?4
HAVING count(*) > 0
ON CONFLICT DO UPDATE SET mention_count = excluded.mention_count, last_mentioned = excluded.last_mentioned

-- name: drop_unmentioned
DELETE FROM people
WHERE owner = ?1 AND folded = ?2 AND NOT EXISTS (SELECT 1 FROM observation_labels WHERE owner = ?1 AND label = ?3)
