-- What the capture of an owner's memories took on a day (UTC), and the turns from which they were captured. No text.
CREATE TABLE capture_days (
    tenant   bigint NOT NULL,
    owner    integer NOT NULL,
    day      date NOT NULL,
    memories bigint NOT NULL,
    calls    bigint NOT NULL,
    tokens   bigint NOT NULL,
    PRIMARY KEY (tenant, owner, day)
) PARTITION BY HASH (tenant);

CREATE TABLE captured_turns (
    tenant bigint NOT NULL,
    owner  integer NOT NULL,
    turn   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, owner, turn)
) PARTITION BY HASH (tenant);

DO $$
DECLARE
    place record;
BEGIN
    FOR place IN
        SELECT t.name, n.number, t.settings
        FROM generate_series(0, 15) AS n (number)
        CROSS JOIN (
            VALUES ('capture_days', 'fillfactor = 50'), ('captured_turns', 'fillfactor = 100')
        ) AS t (name, settings)
    LOOP
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (%s)',
            place.name || '_' || place.number, place.name, place.number, place.settings
        );
    END LOOP;
END $$;
