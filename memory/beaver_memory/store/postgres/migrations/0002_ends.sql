-- Memories that do not always hold are few: a search counts those that it must not see by this index.
CREATE INDEX observations_by_end ON observations (tenant, owner)
WHERE deleted_at IS NULL AND (expires_at IS NOT NULL OR valid_from IS NOT NULL OR valid_until IS NOT NULL);
