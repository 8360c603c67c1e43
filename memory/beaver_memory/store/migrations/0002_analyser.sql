-- The version of the analyser whose terms are stored; 2 is the one of stores that did not say so. While they are made
-- anew it is followed by the number of the memory that this has come to: `3:1000`.
INSERT INTO store_facts VALUES ('analyser', '2');

-- A session is one of an agent: two agents may have one of the same name.
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
