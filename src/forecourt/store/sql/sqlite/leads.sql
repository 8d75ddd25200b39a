-- name: recall
SELECT fingerprint, receipt FROM idempotency WHERE scope = ? AND key = ? AND expires_at > ?;

-- name: recall_among
SELECT scope, fingerprint, receipt FROM idempotency
WHERE scope IN (SELECT value FROM json_each(:scopes)) AND key = :key AND expires_at > :now;

-- name: recall_each
WITH asked (number, scope, key, now) AS (VALUES (?, ?, ?, ?))
SELECT number, fingerprint, receipt FROM asked CROSS JOIN idempotency USING (scope, key) WHERE expires_at > now;

-- name: twin
SELECT lead_person.received_at, lead_id, lead.receipt FROM lead_person JOIN lead USING (lead_id)
WHERE lead_person.dealer_id = ? AND lead_person.person_key = ? AND lead_person.received_at >= ?
  AND lead.vehicle_key = ?
ORDER BY lead_person.received_at, lead_id LIMIT 1;

-- name: busy
SELECT count(*) FROM appointment
WHERE status = 'confirmed' AND dealer_id = ? AND rooftop = ? AND department = ? AND starts_at < ? AND ends_at > ?;

-- name: add_lead
INSERT INTO lead (
    lead_id, dealer_id, rooftop, listing_id, status, received_at, caller, vehicle_key, business, receipt, snapshot
)
VALUES (?, ?, ?, ?, 'received', ?, ?, ?, ?, ?, ?);

-- name: add_grant
INSERT INTO consent_grant VALUES (?, ?);

-- name: add_person
INSERT INTO lead_person VALUES (?, ?, ?, ?);

-- name: remember_key
INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?, ?, ?);

-- name: add_appointment
INSERT INTO appointment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_delivery
INSERT INTO delivery (delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at)
VALUES (?, ?, ?, ?, ?, 'waiting', 0, 0, ?, ?);

-- name: leads
SELECT
    lead_id, lead.dealer_id, lead.rooftop, listing_id, lead.status, received_at, business, consent_grant.body, receipt,
    snapshot, purged_at,
    appointment_id, appointment.department, appointment.kind, appointment.status, starts_at, ends_at
FROM lead JOIN consent_grant USING (lead_id) LEFT JOIN appointment USING (lead_id)
WHERE :dealer_id IS NULL OR lead.dealer_id = :dealer_id
ORDER BY received_at DESC, lead_id DESC LIMIT :limit;

-- name: lead
SELECT
    lead_id, lead.dealer_id, lead.rooftop, listing_id, lead.status, received_at, business, consent_grant.body, receipt,
    snapshot, purged_at,
    appointment_id, appointment.department, appointment.kind, appointment.status, starts_at, ends_at
FROM lead JOIN consent_grant USING (lead_id) LEFT JOIN appointment USING (lead_id) WHERE lead_id = ?;

-- name: claim
UPDATE delivery SET holder = :holder, next_at = :until, attempts = attempts + 1
WHERE delivery_id IN (
    SELECT delivery_id FROM delivery
    WHERE status = 'waiting' AND next_at <= :now AND target NOT IN (SELECT value FROM json_each(:without))
    ORDER BY next_at, delivery_id LIMIT :limit
)
RETURNING
    delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at, settled_at, reason, holder;

-- name: hold
UPDATE delivery SET next_at = :until
WHERE delivery_id = :delivery_id AND status = 'waiting' AND holder = :holder AND turn = :turn;

-- name: settle
UPDATE delivery SET
    status = :status, next_at = coalesce(:next_at, next_at), settled_at = :settled_at, reason = :reason, holder = NULL
WHERE delivery_id = :delivery_id AND turn = :turn
  AND (status = 'waiting' AND holder = :holder OR :status = 'delivered' AND status <> 'delivered');

-- name: next_due
SELECT min(next_at) FROM delivery WHERE status = 'waiting';

-- name: deliveries
SELECT
    delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at, settled_at, reason, holder
FROM delivery WHERE lead_id IN (SELECT value FROM json_each(?)) ORDER BY delivery_id;

-- name: resend
UPDATE delivery SET
    turn = turn + (attempts > 0), attempts = 0, status = 'waiting', since = :now, next_at = :now,
    settled_at = NULL, reason = NULL, holder = NULL
WHERE lead_id = :lead_id
  AND CASE WHEN :target IS NULL THEN kind <> 'event' OR status <> 'delivered' ELSE target = :target END
  AND EXISTS (SELECT 1 FROM lead WHERE lead.lead_id = delivery.lead_id AND purged_at IS NULL);

-- name: delivery_counts
SELECT status, count(*) FROM delivery WHERE status <> 'delivered' GROUP BY status;

-- name: standing
SELECT lead.status, appointment_id, appointment.status
FROM lead LEFT JOIN appointment USING (lead_id) WHERE lead_id = ?;

-- name: set_lead_status
UPDATE lead SET status = :status WHERE lead_id = :lead_id;

-- name: set_appointment_status
UPDATE appointment SET
    status = :status, starts_at = coalesce(:start, starts_at), ends_at = coalesce(:end, ends_at)
WHERE lead_id = :lead_id;

-- name: add_status_change
INSERT INTO status_change (lead_id, entity_id, previous, status, changed_at) VALUES (?, ?, ?, ?, ?);

-- name: status_changes
SELECT lead_id, entity_id, previous, status, changed_at FROM status_change WHERE lead_id = ? ORDER BY change_number;

-- name: to_purge
SELECT lead_id FROM lead
WHERE purged_at IS NULL AND received_at < :before AND (:dealer_id IS NULL OR dealer_id = :dealer_id)
ORDER BY received_at LIMIT :limit;

-- name: count_to_purge
SELECT count(*) FROM lead
WHERE purged_at IS NULL AND received_at < :before AND (:dealer_id IS NULL OR dealer_id = :dealer_id);

-- name: purge_lead
UPDATE lead SET business = x'', snapshot = NULL, caller = NULL, purged_at = :now WHERE lead_id = :lead_id;

-- name: purge_persons
DELETE FROM lead_person WHERE lead_id = :lead_id;

-- name: purge_deliveries
UPDATE delivery SET status = 'parked', settled_at = :now, reason = :reason, holder = NULL
WHERE lead_id = :lead_id AND status = 'waiting';

-- name: proofs_to_purge
SELECT lead_id FROM lead
WHERE purged_at IS NOT NULL AND received_at < :proofs_before AND (:dealer_id IS NULL OR dealer_id = :dealer_id)
ORDER BY received_at LIMIT :limit;

-- name: count_proofs_to_purge
SELECT count(*) FROM lead
WHERE (purged_at IS NOT NULL OR received_at < :before) AND received_at < :proofs_before
  AND (:dealer_id IS NULL OR dealer_id = :dealer_id);

-- name: forget_changes
DELETE FROM status_change WHERE lead_id = :lead_id;

-- name: forget_deliveries
DELETE FROM delivery WHERE lead_id = :lead_id;

-- name: forget_appointment
DELETE FROM appointment WHERE lead_id = :lead_id;

-- name: forget_key
DELETE FROM idempotency WHERE lead_id = :lead_id;

-- name: forget_grant
DELETE FROM consent_grant WHERE lead_id = :lead_id;

-- name: forget_lead
DELETE FROM lead WHERE lead_id = :lead_id;

-- name: count_expired_keys
SELECT count(*) FROM idempotency WHERE expires_at <= ?;

-- name: sweep_keys
DELETE FROM idempotency WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
);

-- name: sweep_persons
DELETE FROM lead_person WHERE (dealer_id, person_key, received_at, lead_id) IN (
    SELECT dealer_id, person_key, received_at, lead_id FROM lead_person
    WHERE received_at < :before ORDER BY received_at LIMIT :limit
);

-- name: to_purge_one
SELECT lead_id FROM lead WHERE lead_id = :lead_id AND purged_at IS NULL;

-- name: lead_fields
SELECT lead_id, business, body FROM lead JOIN consent_grant USING (lead_id)
WHERE lead_id > :after ORDER BY lead_id LIMIT :limit;

-- name: lead_fields_unlike
SELECT lead_id, business, body FROM lead JOIN consent_grant USING (lead_id)
WHERE lead_id > :after
  AND (business <> x'' AND substr(business, 1, length(:beginning)) <> :beginning
       OR substr(body, 1, length(:beginning)) <> :beginning)
ORDER BY lead_id LIMIT :limit;

-- name: count_fields_unlike
SELECT count(*) FROM lead JOIN consent_grant USING (lead_id)
WHERE business <> x'' AND substr(business, 1, length(:beginning)) <> :beginning
   OR substr(body, 1, length(:beginning)) <> :beginning;

-- name: put_business
UPDATE lead SET business = :new WHERE lead_id = :lead_id AND business = :old;

-- name: take_grant
DELETE FROM consent_grant WHERE lead_id = :lead_id AND body = :old;
