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

-- name: generations
SELECT generation, history_from FROM inventory;

-- name: removed_since
-- In stock at the generation, and not any more.
SELECT listing_id FROM past_listing
WHERE from_generation <= ? AND until_generation > ?
  AND NOT EXISTS (SELECT 1 FROM listing WHERE listing.listing_id = past_listing.listing_id)
ORDER BY listing_id;

-- name: written_since
-- The ids are sorted and not the bodies, which are then looked up in that order.
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation FROM listing
WHERE listing_id IN (SELECT listing_id FROM listing WHERE generation > ?) ORDER BY listing_id;

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

-- name: recall
SELECT fingerprint, receipt FROM idempotency WHERE scope = ? AND key = ? AND expires_at > ?;

-- name: twin
SELECT lead_person.received_at, lead_id, lead.receipt FROM lead_person JOIN lead USING (lead_id)
WHERE lead_person.dealer_id = ? AND lead_person.person_key = ? AND lead_person.received_at >= ?
  AND lead.vehicle_key = ?
ORDER BY lead_person.received_at, lead_id LIMIT 1;

-- name: busy
SELECT count(*) FROM appointment
WHERE status = 'confirmed' AND dealer_id = ? AND rooftop = ? AND department = ? AND starts_at < ? AND ends_at > ?;

-- name: add_lead
INSERT INTO lead (lead_id, dealer_id, rooftop, listing_id, status, received_at, caller, vehicle_key, business, receipt)
VALUES (?, ?, ?, ?, 'received', ?, ?, ?, ?, ?);

-- name: add_grant
INSERT INTO consent_grant VALUES (?, ?);

-- name: add_person
INSERT INTO lead_person VALUES (?, ?, ?, ?);

-- name: remember_key
INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?, ?, ?);

-- name: add_appointment
INSERT INTO appointment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: leads
SELECT lead_id, dealer_id, rooftop, listing_id, status, received_at, business, consent_grant.body, receipt
FROM lead JOIN consent_grant USING (lead_id)
WHERE :dealer_id IS NULL OR dealer_id = :dealer_id
ORDER BY received_at DESC, lead_id DESC LIMIT :limit;

-- name: lead
SELECT lead_id, dealer_id, rooftop, listing_id, status, received_at, business, consent_grant.body, receipt
FROM lead JOIN consent_grant USING (lead_id) WHERE lead_id = ?;

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
