-- What a listing says is written once, as an edition; `listing` and `past_listing` point at it. An import writes its
-- editions in small transactions beforehand, so that the one that counts is short.
CREATE TABLE edition (
    edition    INTEGER PRIMARY KEY,
    vin        TEXT,
    vehicle_id TEXT,
    stock      TEXT,
    body       BLOB NOT NULL
);

-- Editions, from the first to the last, that an import has written and not pointed at yet; or never will, if it died.
CREATE TABLE loose_edition (
    first  INTEGER PRIMARY KEY,
    last   INTEGER NOT NULL,
    import INTEGER NOT NULL
);

INSERT INTO edition
SELECT row_number() OVER (ORDER BY listing_id), vin, vehicle_id, stock, body FROM listing;
CREATE TABLE pointing (
    listing_id TEXT PRIMARY KEY,
    dealer_id  TEXT NOT NULL,
    rooftop    TEXT NOT NULL,
    digest     BLOB NOT NULL,
    edition    INTEGER NOT NULL,
    generation INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO pointing
SELECT
    listing_id, dealer_id, rooftop, content_digest(rooftop, body), row_number() OVER (ORDER BY listing_id), generation
FROM listing;
DROP TABLE listing;
ALTER TABLE pointing RENAME TO listing;
CREATE INDEX listing_by_generation ON listing (generation);

ALTER TABLE past_listing RENAME TO whole_past_listing;
DROP INDEX past_listing_by_beginning;
DROP INDEX past_listing_by_time;
CREATE TABLE past_listing (
    listing_id       TEXT NOT NULL,
    dealer_id        TEXT NOT NULL,
    from_generation  INTEGER NOT NULL,
    until_generation INTEGER NOT NULL,
    edition          INTEGER NOT NULL,
    replaced_at      TEXT NOT NULL,
    PRIMARY KEY (until_generation, listing_id)
) WITHOUT ROWID;
CREATE INDEX past_listing_by_beginning ON past_listing (from_generation);
CREATE INDEX past_listing_by_time ON past_listing (replaced_at, until_generation);
INSERT INTO past_listing
SELECT
    listing_id, dealer_id, from_generation, until_generation,
    row_number() OVER (ORDER BY until_generation, listing_id) + (SELECT count(*) FROM edition), replaced_at
FROM whole_past_listing;
INSERT INTO edition
SELECT past_listing.edition, NULL, NULL, NULL, body
FROM past_listing JOIN whole_past_listing USING (until_generation, listing_id) ORDER BY past_listing.edition;
DROP TABLE whole_past_listing;
