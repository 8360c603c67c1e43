-- What the capture of an owner's memories took on a day (UTC), and the turns from which they were captured. No text.
CREATE TABLE capture_days (
    tenant   INTEGER NOT NULL,
    owner    INTEGER NOT NULL,
    day      TEXT NOT NULL,
    memories INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, day),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE captured_turns (
    tenant INTEGER NOT NULL,
    owner  INTEGER NOT NULL,
    turn   TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, turn),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;
