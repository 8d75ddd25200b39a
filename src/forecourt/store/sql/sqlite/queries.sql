-- name: generation
SELECT generation FROM inventory;

-- name: next_generation
UPDATE inventory SET generation = generation + 1;

-- name: listings
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation
FROM listing CROSS JOIN edition USING (edition) ORDER BY listing_id;

-- name: listings_of_dealer
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation
FROM listing CROSS JOIN edition USING (edition) WHERE dealer_id = :dealer_id ORDER BY listing_id;

-- name: stock
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation
FROM listing CROSS JOIN edition USING (edition) ORDER BY listing_id LIMIT :limit;

-- name: stock_of_dealer
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation
FROM listing CROSS JOIN edition USING (edition) WHERE dealer_id = :dealer_id ORDER BY listing_id LIMIT :limit;

-- name: history_from
SELECT history_from FROM inventory;

-- name: generations
SELECT generation, history_from FROM inventory;

-- name: removed_since
-- In stock at the generation, and not any more. The sign keeps to the primary key, where nothing older is met.
SELECT listing_id FROM past_listing
WHERE +from_generation <= ? AND until_generation > ?
  AND NOT EXISTS (SELECT 1 FROM listing WHERE listing.listing_id = past_listing.listing_id)
ORDER BY listing_id;

-- name: written_since
-- The ids are sorted and not the bodies, which are then looked up in that order.
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation
FROM listing CROSS JOIN edition USING (edition)
WHERE listing_id IN (SELECT listing_id FROM listing WHERE generation > ?) ORDER BY listing_id;

-- name: past_listings
-- What was changed or removed, as it was, and after it the ids of what was written, new listings among them.
SELECT listing_id, dealer_id, body FROM past_listing CROSS JOIN edition USING (edition)
WHERE from_generation <= :generation AND until_generation > :generation AND until_generation <= :until
UNION ALL SELECT listing_id, dealer_id, NULL FROM past_listing
WHERE from_generation > :generation AND from_generation <= :until
UNION ALL SELECT listing_id, dealer_id, NULL FROM listing
WHERE generation > :generation AND generation <= :until
LIMIT :limit;

-- name: remember_departed
INSERT OR REPLACE INTO departed (dealer_id, kind, value, left_at) VALUES (?, ?, ?, ?);

-- name: has_departed
SELECT 1 FROM departed WHERE dealer_id IN (SELECT value FROM json_each(?)) AND kind = ? AND departed.value = ?;

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
