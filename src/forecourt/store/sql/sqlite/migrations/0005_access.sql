-- What the authorization server of the PAP binding keeps: Sessions, their tokens by digest, known agents.
CREATE TABLE access_record (
    kind       TEXT NOT NULL,
    key        TEXT NOT NULL,
    value      BLOB NOT NULL,
    version    TEXT NOT NULL,
    expires_at REAL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX access_record_by_expiry ON access_record (expires_at) WHERE expires_at IS NOT NULL;

-- What may be used once and was: digests of assertions and proofs, with the Unix time until which they count.
CREATE TABLE access_mark (
    digest BLOB PRIMARY KEY,
    until  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX access_mark_by_end ON access_mark (until);
