-- What callers prove who they are with: the digest of a key, never the key.
CREATE TABLE api_key (
    key_id     text COLLATE "C" PRIMARY KEY,
    digest     bytea NOT NULL,
    name       text COLLATE "C" NOT NULL,
    sellers    text COLLATE "C",
    requests   integer,
    seconds    integer,
    made_at    timestamptz NOT NULL,
    revoked_at timestamptz
);
