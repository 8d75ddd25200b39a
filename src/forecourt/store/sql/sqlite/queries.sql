-- name: generation
SELECT generation FROM inventory;

-- name: next_generation
UPDATE inventory SET generation = generation + 1;

-- name: keep_departing
INSERT INTO past_listing
SELECT listing_id, dealer_id, generation, :generation, body, :now FROM listing
WHERE dealer_id = :dealer_id AND (:rooftop IS NULL OR rooftop = :rooftop)
  AND listing_id NOT IN (SELECT listing_id FROM staged);

-- name: keep_changing
INSERT INTO past_listing
SELECT listing_id, listing.dealer_id, listing.generation, :generation, listing.body, :now
FROM listing JOIN staged USING (listing_id)
WHERE staged.body <> listing.body OR staged.rooftop <> listing.rooftop;

-- name: forget_past
DELETE FROM past_listing WHERE replaced_at < :kept_since;

-- name: shorten_history
UPDATE inventory SET history_from = max(
    history_from, (SELECT coalesce(max(until_generation), 0) FROM past_listing WHERE replaced_at < :kept_since)
);

-- name: listings
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation FROM listing ORDER BY listing_id;

-- name: stock
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation FROM listing
ORDER BY listing_id LIMIT :limit;

-- name: stock_of_dealer
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation FROM listing
WHERE dealer_id = :dealer_id ORDER BY listing_id LIMIT :limit;

-- name: history_from
SELECT history_from FROM inventory;

-- name: past_listings
-- What was changed or removed, as it was, and after it the ids of what was written, new listings among them.
SELECT listing_id, dealer_id, body FROM past_listing
WHERE from_generation <= :generation AND until_generation > :generation AND until_generation <= :until
UNION ALL SELECT listing_id, dealer_id, NULL FROM past_listing
WHERE from_generation > :generation AND from_generation <= :until
UNION ALL SELECT listing_id, dealer_id, NULL FROM listing
WHERE generation > :generation AND generation <= :until
LIMIT :limit;

-- name: stage_begin
CREATE TEMP TABLE IF NOT EXISTS staged (
    listing_id TEXT PRIMARY KEY, dealer_id TEXT, rooftop TEXT, vin TEXT, vehicle_id TEXT, stock TEXT, body BLOB
) WITHOUT ROWID;

-- name: stage
INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: compare
-- imported, changed, unchanged, removed
SELECT
    (SELECT count(*) FROM staged),
    (
        SELECT count(*) FROM staged JOIN listing USING (listing_id)
        WHERE staged.body <> listing.body OR staged.rooftop <> listing.rooftop
    ),
    (
        SELECT count(*) FROM staged JOIN listing USING (listing_id)
        WHERE staged.body = listing.body AND staged.rooftop = listing.rooftop
    ),
    (
        SELECT count(*) FROM listing
        WHERE dealer_id = :dealer_id AND (:rooftop IS NULL OR rooftop = :rooftop)
          AND listing_id NOT IN (SELECT listing_id FROM staged)
    );

-- name: depart
INSERT OR REPLACE INTO departed (dealer_id, kind, value, left_at)
SELECT dealer_id, kind, value, :now FROM (
    SELECT dealer_id, 'vin' AS kind, vin AS value, listing_id, rooftop FROM listing
    UNION ALL SELECT dealer_id, 'vehicle_id', vehicle_id, listing_id, rooftop FROM listing
    UNION ALL SELECT dealer_id, 'stock', stock, listing_id, rooftop FROM listing
)
WHERE value IS NOT NULL AND dealer_id = :dealer_id AND (:rooftop IS NULL OR rooftop = :rooftop)
  AND listing_id NOT IN (SELECT listing_id FROM staged);

-- name: remove_departed
DELETE FROM listing
WHERE dealer_id = :dealer_id AND (:rooftop IS NULL OR rooftop = :rooftop)
  AND listing_id NOT IN (SELECT listing_id FROM staged);

-- name: take_staged
INSERT INTO listing (listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation)
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, :generation FROM staged WHERE true
ON CONFLICT (listing_id) DO UPDATE SET
    dealer_id = excluded.dealer_id, rooftop = excluded.rooftop, vin = excluded.vin,
    vehicle_id = excluded.vehicle_id, stock = excluded.stock, body = excluded.body, generation = excluded.generation
WHERE excluded.body <> listing.body OR excluded.rooftop <> listing.rooftop;

-- name: remember_departed
INSERT OR REPLACE INTO departed (dealer_id, kind, value, left_at) VALUES (?, ?, ?, ?);

-- name: has_departed
SELECT 1 FROM departed WHERE dealer_id = ? AND kind = ? AND value = ?;

-- name: secrets
SELECT key_id, value, made_at FROM secret WHERE purpose = ? ORDER BY made_at DESC, key_id DESC;

-- name: add_secret
INSERT INTO secret VALUES (?, ?, ?, ?);

-- name: drop_secret
DELETE FROM secret WHERE purpose = ? AND key_id = ?;

-- name: lease
INSERT INTO lease VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE lease.holder = excluded.holder OR lease.held_until <= :now;

-- name: release
DELETE FROM lease WHERE name = ? AND holder = ?;

-- name: feed_state
SELECT source, checked_at, imported_at, etag, last_modified, outcome, report FROM feed_state WHERE source = ?;

-- name: feed_states
SELECT source, checked_at, imported_at, etag, last_modified, outcome, report FROM feed_state ORDER BY source;

-- name: keep_feed_state
INSERT OR REPLACE INTO feed_state VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: add_api_key
INSERT INTO api_key (key_id, digest, name, sellers, requests, seconds, made_at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: api_keys
SELECT key_id, digest, name, sellers, requests, seconds, made_at, revoked_at FROM api_key ORDER BY key_id;

-- name: revoke_api_key
UPDATE api_key SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL;
