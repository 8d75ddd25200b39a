-- name: access_get
SELECT value, version, expires_at FROM access_record
WHERE kind = %s AND key = %s AND (expires_at IS NULL OR expires_at > %s);

-- name: access_put
INSERT INTO access_record (kind, key, value, version, expires_at) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (kind, key) DO UPDATE
SET value = excluded.value, version = excluded.version, expires_at = excluded.expires_at;

-- name: access_create
INSERT INTO access_record (kind, key, value, version, expires_at) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (kind, key) DO UPDATE
SET value = excluded.value, version = excluded.version, expires_at = excluded.expires_at
WHERE access_record.expires_at <= %s;

-- name: access_replace
UPDATE access_record SET value = %s, version = %s, expires_at = %s
WHERE kind = %s AND key = %s AND version = %s AND (expires_at IS NULL OR expires_at > %s);

-- name: access_take
DELETE FROM access_record
WHERE kind = %s AND key = %s AND (expires_at IS NULL OR expires_at > %s) RETURNING value;

-- name: access_delete
DELETE FROM access_record WHERE kind = %s AND key = %s;

-- name: access_records
SELECT value, version, expires_at FROM access_record
WHERE kind = %s AND (expires_at IS NULL OR expires_at > %s) LIMIT %s;

-- name: access_mark
INSERT INTO access_mark (digest, until)
SELECT digest, until FROM unnest(%s::bytea[], %s::bigint[]) AS given (digest, until) ORDER BY digest
ON CONFLICT (digest) DO UPDATE SET until = excluded.until WHERE access_mark.until < %s
RETURNING digest;

-- name: access_version
SELECT kind, key, version FROM access_record JOIN unnest(%s::text[], %s::text[]) AS given (kind, key) USING (kind, key)
WHERE expires_at IS NULL OR expires_at > %s;

-- name: access_forget_records
DELETE FROM access_record WHERE (kind, key) IN (
    SELECT kind, key FROM access_record WHERE expires_at < %s ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED
);

-- name: access_forget_marks
DELETE FROM access_mark WHERE digest IN (
    SELECT digest FROM access_mark WHERE until < %s ORDER BY until LIMIT %s FOR UPDATE SKIP LOCKED
);
