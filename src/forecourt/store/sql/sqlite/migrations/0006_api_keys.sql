-- What callers prove who they are with: the digest of a key, never the key.
CREATE TABLE api_key (
    key_id     TEXT PRIMARY KEY,
    digest     BLOB NOT NULL,
    name       TEXT NOT NULL,
    sellers    TEXT,
    requests   INTEGER,
    seconds    INTEGER,
    made_at    TEXT NOT NULL,
    revoked_at TEXT
) WITHOUT ROWID;
