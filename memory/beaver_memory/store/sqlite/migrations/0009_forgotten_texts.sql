-- Keyed hashes of forgotten texts, by which capture knows the same words again: see `store/forgotten_texts.py`.
CREATE TABLE forgotten_texts (
    tenant INTEGER NOT NULL,
    owner  INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (tenant, owner, digest),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;
