-- What the authorization server of the PAP binding keeps: Sessions, their tokens by digest, known agents.
CREATE TABLE access_record (
    kind       text NOT NULL,
    key        text NOT NULL,
    value      bytea NOT NULL,
    version    text NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (kind, key)
);
CREATE INDEX access_record_by_expiry ON access_record (expires_at) WHERE expires_at IS NOT NULL;

-- What may be used once and was: digests of assertions and proofs, with the Unix time until which they count.
CREATE TABLE access_mark (
    digest bytea PRIMARY KEY,
    until  bigint NOT NULL
);
CREATE INDEX access_mark_by_end ON access_mark (until);
