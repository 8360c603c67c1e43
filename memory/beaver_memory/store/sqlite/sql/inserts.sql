-- New memories with their labels, and the people whom memories mention.

-- name: take_ids
UPDATE tenants SET next_id = next_id + ?1 WHERE number = ?2 RETURNING next_id - ?1

-- name: add_memory
-- `rows.new_row` gives the values from `owner` on, in this order.
INSERT INTO observations (
    tenant, id, checksum, owner, version, store, type, scope, project, session, agent, source, speaker, origin, pinned,
    confidence, importance, created_at, expires_at, valid_from, valid_until, added_at, updated_at, token_count, uid,
    hash, length, terms, tags, keywords, related_files, related_people, title, summary, facts, narrative,
    evidence
)
VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
)

-- name: has_uid
SELECT 1 FROM observations INDEXED BY observations_by_uid WHERE tenant = ? AND uid = ?

-- name: queue_embeddings
INSERT INTO unembedded (tenant, owner, model, created_at, memory)
SELECT o.tenant, o.owner, m.id, o.created_at, o.id
FROM models AS m
CROSS JOIN observations AS o
WHERE o.row BETWEEN ? AND ?

-- name: add_label
INSERT OR IGNORE INTO observation_labels (tenant, owner, label, created_at, memory) VALUES (?, ?, ?, ?, ?)

-- name: drop_label
DELETE FROM observation_labels WHERE tenant = ? AND owner = ? AND label = ? AND created_at = ? AND memory = ?

-- name: checksum_of_person
-- Of a new one; it does not change with the counts.
texts_sum(
    (SELECT name FROM tenants WHERE number = ?1),
    (SELECT user FROM owners WHERE tenant = ?1 AND number = ?2),
    (SELECT kind FROM owners WHERE tenant = ?1 AND number = ?2),
    ?3, ?4, '[]'
)

-- name: mention_person
INSERT INTO people (tenant, owner, folded, name, mention_count, last_mentioned, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    mention_count = mention_count + excluded.mention_count,
    last_mentioned = max(last_mentioned, excluded.last_mentioned)

-- name: count_mentions
INSERT INTO people (tenant, owner, folded, name, mention_count, last_mentioned, checksum)
SELECT ?1, ?2, ?3, ?4, count(*), max(created_at), {checksum}
FROM observation_labels
WHERE tenant = ?1 AND owner = ?2 AND label = ?5
HAVING count(*) > 0
ON CONFLICT DO UPDATE SET mention_count = excluded.mention_count, last_mentioned = excluded.last_mentioned

-- name: drop_unmentioned
DELETE FROM people
WHERE tenant = ?1 AND owner = ?2 AND folded = ?3
    AND NOT EXISTS (SELECT 1 FROM observation_labels WHERE tenant = ?1 AND owner = ?2 AND label = ?4)
