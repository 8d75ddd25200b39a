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

-- What may be used once and was, many at a time in the order of their transactions: each mark is a digest and the Unix
-- time until which it counts (24 bytes); `until` is the latest of a row's. A number that was rolled back comes again,
-- with another tag.
CREATE TABLE access_mark (
    number INTEGER PRIMARY KEY,
    tag    BLOB NOT NULL,
    until  INTEGER NOT NULL,
    marks  BLOB NOT NULL
);
