-- The memory that holds in place of one whose time has ended. A memory without it keeps its checksum.
ALTER TABLE observations ADD COLUMN superseded_by bigint;

CREATE INDEX observations_by_successor ON observations (tenant, superseded_by) WHERE superseded_by IS NOT NULL;
