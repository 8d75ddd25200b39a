-- The generation at which a listing was last written: a walk knows by it what has changed since it began.
ALTER TABLE listing ADD COLUMN generation bigint NOT NULL DEFAULT 0;
CREATE INDEX listing_by_generation ON listing (generation);

-- The oldest generation whose stock can still be told from `listing` and `past_listing`.
ALTER TABLE inventory ADD COLUMN history_from bigint NOT NULL DEFAULT 0;
UPDATE inventory SET history_from = generation;

-- What a listing was from one generation until, not including, another; kept a little longer than cursors live.
CREATE TABLE past_listing (
    listing_id       text COLLATE "C" NOT NULL,
    dealer_id        text COLLATE "C" NOT NULL,
    from_generation  bigint NOT NULL,
    until_generation bigint NOT NULL,
    body             bytea NOT NULL,
    replaced_at      timestamptz NOT NULL,
    PRIMARY KEY (until_generation, listing_id)
);
CREATE INDEX past_listing_by_beginning ON past_listing (from_generation);
CREATE INDEX past_listing_by_time ON past_listing (replaced_at, until_generation);

-- What only one process does at a time, and until when it is that process's to do.
CREATE TABLE lease (
    name       text COLLATE "C" PRIMARY KEY,
    holder     text COLLATE "C" NOT NULL,
    held_until timestamptz NOT NULL
);

-- Scheduled feeds: the last look at each source, and what a conditional request repeats.
CREATE TABLE feed_state (
    source        text COLLATE "C" PRIMARY KEY,
    checked_at    timestamptz NOT NULL,
    imported_at   timestamptz,
    etag          text COLLATE "C",
    last_modified text COLLATE "C",
    outcome       text COLLATE "C" NOT NULL,
    report        bytea NOT NULL
);
