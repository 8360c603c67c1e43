-- Checksums of people and of summaries of sessions: see `checksums.texts_checksum`. The sum of a person leaves out its
-- counts, which are compared with the memories that mention it.
ALTER TABLE people ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;

UPDATE people
SET checksum = texts_sum(
    (SELECT t.name FROM tenants AS t WHERE t.number = people.tenant),
    (SELECT w.user FROM owners AS w WHERE w.tenant = people.tenant AND w.number = people.owner),
    CAST(folded AS BLOB), CAST(name AS BLOB), CAST(aliases AS BLOB)
);

ALTER TABLE session_summaries ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;

UPDATE session_summaries
SET checksum = texts_sum(
    (SELECT t.name FROM tenants AS t WHERE t.number = session_summaries.tenant),
    (
        SELECT w.user FROM owners AS w
        WHERE w.tenant = session_summaries.tenant AND w.number = session_summaries.owner
    ),
    CAST(agent AS BLOB), CAST(session AS BLOB), CAST(request AS BLOB), CAST(outcome AS BLOB), CAST(decisions AS BLOB),
    CAST(open_items AS BLOB), observation_count, created_at
);
