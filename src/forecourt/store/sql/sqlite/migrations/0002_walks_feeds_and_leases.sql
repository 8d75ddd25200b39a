-- The generation at which a listing was last written: a walk knows by it what has changed since it began.
ALTER TABLE listing ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
CREATE INDEX listing_by_generation ON listing (generation);

-- The oldest generation whose stock can still be told from `listing` and `past_listing`.
ALTER TABLE inventory ADD COLUMN history_from INTEGER NOT NULL DEFAULT 0;
UPDATE inventory SET history_from = generation;

-- What a listing was from one generation until, not including, another; kept a little longer than cursors live.
CREATE TABLE past_listing (
    listing_id       TEXT NOT NULL,
    dealer_id        TEXT NOT NULL,
    from_generation  INTEGER NOT NULL,
    until_generation INTEGER NOT NULL,
    body             BLOB NOT NULL,
    replaced_at      TEXT NOT NULL,
    PRIMARY KEY (until_generation, listing_id)
) WITHOUT ROWID;
CREATE INDEX past_listing_by_beginning ON past_listing (from_generation);
CREATE INDEX past_listing_by_time ON past_listing (replaced_at, until_generation);

-- What only one process does at a time, and until when it is that process's to do.
CREATE TABLE lease (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until TEXT NOT NULL
) WITHOUT ROWID;

-- Scheduled feeds: the last look at each source, and what a conditional request repeats.
CREATE TABLE feed_state (
    source        TEXT PRIMARY KEY,
    checked_at    TEXT NOT NULL,
    imported_at   TEXT,
    etag          TEXT,
    last_modified TEXT,
    outcome       TEXT NOT NULL,
    report        BLOB NOT NULL
) WITHOUT ROWID;
