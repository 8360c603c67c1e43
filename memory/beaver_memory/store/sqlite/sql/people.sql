-- People, and summaries of sessions. Texts are read as bytes: one that is not UTF-8 fails no statement.

-- name: mentions
-- The memories of an owner that mention people, each once for each person: whether the reader may see the memory, and
-- whether it fails its checksum.
SELECT substr(CAST(l.label AS BLOB), 8), o.id, o.created_at, CAST(o.related_people AS BLOB), -- after `person:`
    o.owner = l.owner AND {conditions}, {fails}
FROM observation_labels AS l
CROSS JOIN observations AS o ON o.tenant = l.tenant AND o.id = l.memory
WHERE l.tenant = ? AND l.owner = ? AND l.label >= ? AND l.label < ?
ORDER BY l.label, o.id

-- name: people_of_owner
SELECT CAST(folded AS BLOB), CAST(name AS BLOB), CAST(aliases AS BLOB), mention_count, checksum
FROM people
WHERE tenant = ? AND owner = ?

-- name: summaries
-- The index gives the order and the key: a row whose own key is damaged is not found by it.
SELECT CAST(k.agent AS BLOB), CAST(k.session AS BLOB), CAST(s.request AS BLOB), CAST(s.outcome AS BLOB),
    CAST(s.decisions AS BLOB), CAST(s.open_items AS BLOB), s.observation_count, s.created_at, s.checksum
FROM session_summaries AS k INDEXED BY session_summaries_by_time
LEFT JOIN session_summaries AS s
    ON s.tenant = k.tenant AND s.owner = k.owner AND s.agent = k.agent AND s.session = k.session
WHERE k.tenant = ? AND k.owner = ?
ORDER BY k.created_at DESC, k.agent, k.session

-- name: set_summary
INSERT OR REPLACE INTO session_summaries (
    tenant, owner, agent, session, request, outcome, decisions, open_items, observation_count, created_at, checksum
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: drop_summaries
DELETE FROM session_summaries
WHERE tenant = ?1 AND owner = ?2 AND (?3 IS NULL OR session IN (SELECT value FROM json_each(?3)))
