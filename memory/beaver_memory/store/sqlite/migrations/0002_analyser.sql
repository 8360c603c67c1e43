-- The version of the analyser that made the stored terms. Stores without this fact have version 2. While the terms are
-- rebuilt, the number of the last rebuilt memory follows the version: `3:1000`.
INSERT INTO store_facts VALUES ('analyser', '2');

-- A session belongs to an agent: two agents may have sessions of the same name.
CREATE TABLE summaries_of_agents (
    owner             INTEGER NOT NULL REFERENCES owners (id),
    agent             TEXT NOT NULL,
    session           TEXT NOT NULL,
    request           TEXT NOT NULL,
    outcome           TEXT NOT NULL,
    decisions         TEXT NOT NULL,
    open_items        TEXT NOT NULL,
    observation_count INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    PRIMARY KEY (owner, agent, session)
) STRICT, WITHOUT ROWID;

INSERT INTO summaries_of_agents
SELECT owner, '', session, request, outcome, decisions, open_items, observation_count, created_at FROM session_summaries;

DROP TABLE session_summaries;

ALTER TABLE summaries_of_agents RENAME TO session_summaries;

CREATE INDEX session_summaries_by_time ON session_summaries (owner, created_at);
