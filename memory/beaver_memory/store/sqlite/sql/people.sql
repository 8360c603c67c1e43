-- People, and summaries of sessions.

-- name: people
-- The count covers visible memories only: a reader who may see none of a person's memories does not see the name.
SELECT p.folded, p.name, p.aliases, count(*), max(l.created_at)
FROM observation_labels AS l
CROSS JOIN observations AS o ON o.tenant = l.tenant AND o.id = l.memory
CROSS JOIN people AS p ON p.tenant = l.tenant AND p.owner = l.owner AND p.folded = substr(l.label, 8) -- after `person:`
WHERE l.tenant = ? AND l.owner = ? AND l.label >= ? AND l.label < ? AND {conditions}
GROUP BY l.label

-- name: summaries
SELECT agent, session, request, outcome, decisions, open_items, observation_count, created_at
FROM session_summaries
WHERE tenant = ? AND owner = ?
ORDER BY created_at DESC, agent, session
LIMIT ?

-- name: set_summary
INSERT OR REPLACE INTO session_summaries (
    tenant, owner, agent, session, request, outcome, decisions, open_items, observation_count, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
