-- name: access_get
SELECT value, version, expires_at FROM access_record
WHERE kind = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?);

-- name: access_put
INSERT INTO access_record (kind, key, value, version, expires_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (kind, key) DO UPDATE
SET value = excluded.value, version = excluded.version, expires_at = excluded.expires_at;

-- name: access_create
INSERT INTO access_record (kind, key, value, version, expires_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (kind, key) DO UPDATE
SET value = excluded.value, version = excluded.version, expires_at = excluded.expires_at
WHERE access_record.expires_at <= ?;

-- name: access_replace
UPDATE access_record SET value = ?, version = ?, expires_at = ?
WHERE kind = ? AND key = ? AND version = ? AND (expires_at IS NULL OR expires_at > ?);

-- name: access_take
DELETE FROM access_record
WHERE kind = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?) RETURNING value;

-- name: access_delete
DELETE FROM access_record WHERE kind = ? AND key = ?;

-- name: access_records
SELECT value, version, expires_at FROM access_record
WHERE kind = ? AND (expires_at IS NULL OR expires_at > ?) LIMIT ?;

-- name: access_marks
SELECT number, tag, marks FROM access_mark WHERE number >= ? ORDER BY number;

-- name: access_mark
INSERT INTO access_mark (tag, until, marks) VALUES (?, ?, ?);

-- name: access_version
SELECT version FROM access_record
WHERE kind = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?);

-- name: access_forget_records
DELETE FROM access_record WHERE (kind, key) IN (
    SELECT kind, key FROM access_record WHERE expires_at < ? ORDER BY expires_at LIMIT ?
);

-- name: access_forget_marks
DELETE FROM access_mark WHERE number IN (
    SELECT number FROM access_mark
    WHERE number < coalesce(
        (SELECT number FROM access_mark WHERE until >= ? ORDER BY number LIMIT 1),
        (SELECT max(number) + 1 FROM access_mark)
    )
    ORDER BY number LIMIT ?
);
