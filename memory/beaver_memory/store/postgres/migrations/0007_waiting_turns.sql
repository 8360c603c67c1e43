-- The turns that wait to be captured: see `store/turn_queue.py`. Captured turns leave no row here. A turn without
-- `due_at` is parked.
CREATE SEQUENCE waiting_turn_numbers;

CREATE TABLE waiting_turns (
    tenant    bigint NOT NULL,
    owner     integer NOT NULL,
    key       text COLLATE "C" NOT NULL,
    number    bigint NOT NULL DEFAULT nextval('waiting_turn_numbers'),
    turn      text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    project   text COLLATE "C" NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    store     text NOT NULL,
    content   text NOT NULL,
    queued_at bigint NOT NULL,
    attempts  integer NOT NULL DEFAULT 0,
    due_at    bigint,
    error     text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, owner, key)
) PARTITION BY HASH (tenant);

CREATE INDEX waiting_turns_by_session ON waiting_turns (tenant, owner, session, number);

DO $$
BEGIN
    FOR place IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE waiting_turns_%s PARTITION OF waiting_turns FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            place, place
        );
    END LOOP;
END $$;
