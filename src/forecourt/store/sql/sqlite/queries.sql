-- name: generation
SELECT generation FROM inventory;

-- name: next_generation
UPDATE inventory SET generation = generation + 1;

-- name: listings
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body FROM listing ORDER BY listing_id;

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
INSERT INTO listing SELECT * FROM staged WHERE true
ON CONFLICT (listing_id) DO UPDATE SET
    dealer_id = excluded.dealer_id, rooftop = excluded.rooftop, vin = excluded.vin,
    vehicle_id = excluded.vehicle_id, stock = excluded.stock, body = excluded.body
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
SELECT key_id, value FROM secret WHERE purpose = ? ORDER BY made_at DESC, key_id DESC;

-- name: add_secret
INSERT INTO secret VALUES (?, ?, ?, ?);
