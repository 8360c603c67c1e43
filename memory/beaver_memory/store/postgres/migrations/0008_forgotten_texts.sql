-- Keyed hashes of forgotten texts, by which capture knows the same words again: see `store/forgotten_texts.py`.
CREATE TABLE forgotten_texts (
    tenant bigint NOT NULL,
    owner  integer NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (tenant, owner, digest)
) PARTITION BY HASH (tenant);

DO $$
BEGIN
    FOR place IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE forgotten_texts_%s PARTITION OF forgotten_texts FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            place, place
        );
    END LOOP;
END $$;
