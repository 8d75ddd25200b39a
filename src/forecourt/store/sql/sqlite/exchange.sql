-- What an import does to the inventory, in the order in which it does it.

-- name: begin
-- These tables are a file of the connection's own: filling them holds no lock that leads wait for.
CREATE TEMP TABLE staged (
    listing_id TEXT NOT NULL, dealer_id TEXT, rooftop TEXT, digest BLOB, edition INTEGER, fresh INTEGER
);

-- name: begin_newest
CREATE TEMP TABLE newest (
    listing_id TEXT PRIMARY KEY, dealer_id TEXT, rooftop TEXT, digest BLOB, edition INTEGER, fresh INTEGER
) WITHOUT ROWID;

-- name: begin_differing
CREATE TEMP TABLE differing (
    listing_id TEXT PRIMARY KEY, dealer_id TEXT, rooftop TEXT, digest BLOB, edition INTEGER, fresh INTEGER, held INTEGER
) WITHOUT ROWID;

-- name: begin_leaving
CREATE TEMP TABLE leaving (listing_id TEXT PRIMARY KEY) WITHOUT ROWID;

-- name: begin_departing
CREATE TEMP TABLE departing (
    dealer_id TEXT, kind TEXT, value TEXT, PRIMARY KEY (dealer_id, kind, value)
) WITHOUT ROWID;

-- name: begin_unused
CREATE TEMP TABLE unused (edition INTEGER PRIMARY KEY);

-- name: is_empty
SELECT NOT EXISTS (SELECT 1 FROM listing);

-- name: known
SELECT listing_id, digest, edition FROM listing WHERE listing_id IN (SELECT value FROM json_each(?));

-- name: stage
INSERT INTO staged VALUES (?, ?, ?, ?, ?, ?);

-- name: last_edition
SELECT coalesce(max(edition), 0) FROM edition;

-- name: write_edition
INSERT INTO edition (edition, vin, vehicle_id, stock, body) VALUES (?, ?, ?, ?, ?);

-- name: write_loose
INSERT INTO loose_edition VALUES (?, ?, ?);

-- name: take_newest
-- Of several with one id the last counts. In the order of the key, so that a row is written at the end of the table.
INSERT OR REPLACE INTO newest SELECT * FROM staged ORDER BY listing_id, rowid;

-- name: forget_differing
DELETE FROM differing;

-- name: forget_leaving
DELETE FROM leaving;

-- name: forget_departing
DELETE FROM departing;

-- name: find_differing
INSERT INTO differing
SELECT
    listing_id, newest.dealer_id, newest.rooftop, newest.digest, newest.edition, fresh, listing.listing_id IS NOT NULL
FROM newest LEFT JOIN listing USING (listing_id)
WHERE listing.digest IS NOT newest.digest ORDER BY listing_id;

-- name: find_leaving
INSERT INTO leaving
SELECT listing_id FROM listing
WHERE dealer_id = :dealer_id AND (:rooftop IS NULL OR rooftop = :rooftop)
  AND listing_id NOT IN (SELECT listing_id FROM newest)
ORDER BY listing_id;

-- name: find_departing
INSERT OR IGNORE INTO departing
SELECT dealer_id, kind, value FROM (
    SELECT dealer_id, 'vin' AS kind, vin AS value, listing_id
    FROM leaving CROSS JOIN listing USING (listing_id) CROSS JOIN edition USING (edition)
    UNION ALL SELECT dealer_id, 'vehicle_id', vehicle_id, listing_id
    FROM leaving CROSS JOIN listing USING (listing_id) CROSS JOIN edition USING (edition)
    UNION ALL SELECT dealer_id, 'stock', stock, listing_id
    FROM leaving CROSS JOIN listing USING (listing_id) CROSS JOIN edition USING (edition)
)
WHERE value IS NOT NULL ORDER BY dealer_id, kind, value;

-- name: forget_unused
DELETE FROM unused;

-- name: count_differing
SELECT count(*) FROM differing;

-- name: find_unused
-- Written and not needed: a later row of the feed has the same id, or another import brought the same.
INSERT OR IGNORE INTO unused
SELECT edition FROM (SELECT edition FROM staged WHERE fresh UNION ALL SELECT edition FROM newest WHERE fresh)
WHERE edition NOT IN (SELECT edition FROM differing);

-- name: count
-- imported, changed, unchanged, removed
SELECT
    (SELECT count(*) FROM newest),
    (SELECT count(*) FROM differing WHERE held),
    (SELECT count(*) FROM newest) - (SELECT count(*) FROM differing),
    (SELECT count(*) FROM leaving);

-- name: borrowed
-- What was found unchanged and has been replaced since by another import.
SELECT listing_id, edition FROM differing WHERE NOT fresh LIMIT ?;

-- name: copy_edition
INSERT INTO edition SELECT ?, vin, vehicle_id, stock, body FROM edition WHERE edition = ?;

-- name: lend
UPDATE differing SET edition = ?, fresh = 1 WHERE listing_id = ?;

-- name: lend_newest
UPDATE newest SET edition = ?, fresh = 1 WHERE listing_id = ?;

-- name: keep_changing
INSERT INTO past_listing
SELECT listing_id, listing.dealer_id, listing.generation, :generation, listing.edition, :now
FROM differing CROSS JOIN listing USING (listing_id) WHERE held ORDER BY listing_id;

-- name: keep_leaving
INSERT INTO past_listing
SELECT listing_id, dealer_id, generation, :generation, edition, :now
FROM leaving CROSS JOIN listing USING (listing_id) ORDER BY listing_id;

-- name: depart
INSERT OR REPLACE INTO departed (dealer_id, kind, value, left_at)
SELECT dealer_id, kind, value, :now FROM departing ORDER BY dealer_id, kind, value;

-- name: remove_leaving
DELETE FROM listing WHERE listing_id IN (SELECT listing_id FROM leaving);

-- name: take_differing
INSERT INTO listing (listing_id, dealer_id, rooftop, digest, edition, generation)
SELECT listing_id, dealer_id, rooftop, digest, edition, :generation FROM differing WHERE true ORDER BY listing_id
ON CONFLICT (listing_id) DO UPDATE SET
    dealer_id = excluded.dealer_id, rooftop = excluded.rooftop, digest = excluded.digest,
    edition = excluded.edition, generation = excluded.generation;

-- name: own_editions
DELETE FROM loose_edition WHERE import = :import;

-- name: leave_unused
INSERT INTO loose_edition SELECT edition, edition, :import FROM unused;

-- name: shorten_history
UPDATE inventory SET history_from = max(
    history_from, (SELECT coalesce(max(until_generation), 0) FROM past_listing WHERE replaced_at < :kept_since)
);

-- name: dead_past
SELECT until_generation, listing_id, edition FROM past_listing
WHERE until_generation <= (SELECT history_from FROM inventory) LIMIT ?;

-- name: drop_past
DELETE FROM past_listing WHERE until_generation = ? AND listing_id = ?;

-- name: drop_edition
DELETE FROM edition WHERE edition = ?;

-- name: loose
SELECT first, last FROM loose_edition LIMIT 1;

-- name: drop_editions
DELETE FROM edition WHERE edition BETWEEN ? AND ?;

-- name: drop_loose
DELETE FROM loose_edition WHERE first = ?;
