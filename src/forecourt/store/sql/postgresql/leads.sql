-- name: recall
SELECT fingerprint, receipt FROM idempotency WHERE scope = %s AND key = %s AND expires_at > %s;

-- name: recall_among
SELECT scope, fingerprint, receipt FROM idempotency
WHERE scope = ANY(%s::text[]) AND key = %s AND expires_at > %s;

-- name: recall_each
SELECT number, fingerprint, receipt
FROM unnest(%s::integer[], %s::text[], %s::bytea[], %s::timestamptz[]) AS asked (number, scope, key, now)
    JOIN idempotency USING (scope, key)
WHERE expires_at > now;

-- name: twin
SELECT lead.receipt FROM lead_person JOIN lead USING (lead_id)
WHERE lead_person.dealer_id = %s AND lead_person.person_key = ANY(%s::text[]) AND lead_person.received_at >= %s
  AND lead.vehicle_key = %s
ORDER BY lead_person.received_at, lead_id LIMIT 1;

-- name: busy
SELECT count(*) FROM appointment
WHERE status = 'confirmed' AND dealer_id = %s AND rooftop = %s AND department = %s
  AND starts_at < %s AND ends_at > %s;

-- name: add
-- One statement for everything, because each one costs the client as much as the server. A lead without a key has no
-- scope, one without an appointment no appointment_id.
WITH added AS (
    INSERT INTO lead (
        lead_id, dealer_id, rooftop, listing_id, status, received_at, caller, vehicle_key, business, receipt,
        snapshot
    )
    VALUES (
        %(lead_id)s, %(dealer_id)s, %(rooftop)s, %(listing_id)s, 'received', %(received_at)s, %(caller)s,
        %(vehicle_key)s, %(business)s, %(receipt)s, %(snapshot)s
    )
    RETURNING lead_id, dealer_id, rooftop, received_at, receipt
), granted AS (
    INSERT INTO consent_grant (lead_id, body) SELECT lead_id, %(grant)s FROM added
), known AS (
    INSERT INTO lead_person (dealer_id, person_key, received_at, lead_id)
    SELECT dealer_id, person_key, received_at, lead_id FROM added, unnest(%(person_keys)s::text[]) AS person_key
), remembered AS (
    INSERT INTO idempotency (scope, key, fingerprint, lead_id, receipt, expires_at)
    SELECT %(scope)s, %(key)s, %(fingerprint)s, lead_id, receipt, %(expires_at)s FROM added
    WHERE %(scope)s::text IS NOT NULL
    ON CONFLICT (scope, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, lead_id = excluded.lead_id,
        receipt = excluded.receipt, expires_at = excluded.expires_at
), sent AS (
    INSERT INTO delivery (delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at)
    SELECT delivery_id, lead_id, target, kind, content, 'waiting', 0, 0, received_at, received_at
    FROM added, unnest(%(delivery_ids)s::text[], %(targets)s::text[], %(kinds)s::text[], %(contents)s::bytea[])
        AS new (delivery_id, target, kind, content)
)
INSERT INTO appointment (appointment_id, lead_id, dealer_id, rooftop, department, kind, status, starts_at, ends_at)
SELECT
    %(appointment_id)s, lead_id, dealer_id, rooftop, %(department)s, %(kind)s, %(status)s, %(start)s, %(end)s
FROM added WHERE %(appointment_id)s::text IS NOT NULL;

-- name: add_each
-- The same for many leads without appointments.
WITH added AS (
    INSERT INTO lead (
        lead_id, dealer_id, rooftop, listing_id, status, received_at, caller, vehicle_key, business, receipt,
        snapshot
    )
    SELECT
        lead_id, dealer_id, rooftop, listing_id, 'received', received_at, caller, vehicle_key, business, receipt,
        snapshot
    FROM unnest(
        %(lead_ids)s::text[], %(dealer_ids)s::text[], %(rooftops)s::text[], %(listing_ids)s::text[],
        %(received_at)s::timestamptz[], %(callers)s::text[], %(vehicle_keys)s::text[], %(businesses)s::bytea[],
        %(receipts)s::bytea[], %(snapshots)s::bytea[]
    ) AS new (
        lead_id, dealer_id, rooftop, listing_id, received_at, caller, vehicle_key, business, receipt, snapshot
    )
    RETURNING lead_id, dealer_id, rooftop, received_at, receipt
), granted AS (
    INSERT INTO consent_grant (lead_id, body)
    SELECT lead_id, body FROM unnest(%(lead_ids)s::text[], %(grants)s::bytea[]) AS new (lead_id, body)
), known AS (
    INSERT INTO lead_person (dealer_id, person_key, received_at, lead_id)
    SELECT dealer_id, person_key, received_at, lead_id
    FROM added JOIN unnest(%(persons_of)s::text[], %(person_keys)s::text[]) AS new (lead_id, person_key)
        USING (lead_id)
), remembered AS (
    INSERT INTO idempotency (scope, key, fingerprint, lead_id, receipt, expires_at)
    SELECT scope, key, fingerprint, lead_id, receipt, expires_at
    FROM added JOIN unnest(
        %(keys_of)s::text[], %(scopes)s::text[], %(keys)s::bytea[], %(fingerprints)s::text[],
        %(expire_at)s::timestamptz[]
    ) AS new (lead_id, scope, key, fingerprint, expires_at) USING (lead_id)
    ON CONFLICT (scope, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, lead_id = excluded.lead_id,
        receipt = excluded.receipt, expires_at = excluded.expires_at
)
INSERT INTO delivery (delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at)
SELECT delivery_id, lead_id, target, kind, content, 'waiting', 0, 0, received_at, received_at
FROM added JOIN unnest(
    %(deliveries_of)s::text[], %(delivery_ids)s::text[], %(targets)s::text[], %(kinds)s::text[], %(contents)s::bytea[]
) AS new (lead_id, delivery_id, target, kind, content) USING (lead_id);

-- name: add_new
-- The same for leads whose keys are taken to be new, as a transaction of its own: it fails when one is known. Every lock
-- is there before the first row is written. Nothing is asked that an earlier snapshot could answer wrongly.
WITH held AS MATERIALIZED (
    SELECT count(taken) AS locks
    FROM (
        SELECT
            CASE WHEN shared
                THEN pg_advisory_xact_lock_shared(number)::text
                ELSE pg_advisory_xact_lock(number)::text
            END AS taken
        FROM (
            SELECT (lock ->> 0)::bigint AS number, (lock ->> 1)::boolean AS shared
            FROM json_array_elements(%(locks)s::json) WITH ORDINALITY AS wanted (lock, place)
            ORDER BY place
        ) AS wanted
    ) AS taken
), new AS MATERIALIZED (
    SELECT each.*
    FROM held CROSS JOIN json_to_recordset(%(leads)s::json) AS each (
        lead_id text, dealer_id text, rooftop text, listing_id text, received_at timestamptz, caller text,
        vehicle_key text, business text, receipt text, snapshot text, body text, person_keys text[], scope text,
        key text, fingerprint text, expires_at timestamptz, deliveries json
    )
), added AS (
    INSERT INTO lead (
        lead_id, dealer_id, rooftop, listing_id, status, received_at, caller, vehicle_key, business, receipt,
        snapshot
    )
    SELECT
        lead_id, dealer_id, rooftop, listing_id, 'received', received_at, caller, vehicle_key,
        decode(business, 'base64'), decode(receipt, 'base64'), decode(snapshot, 'base64')
    FROM new
), granted AS (
    INSERT INTO consent_grant (lead_id, body) SELECT lead_id, decode(body, 'base64') FROM new
), known AS (
    INSERT INTO lead_person (dealer_id, person_key, received_at, lead_id)
    SELECT dealer_id, person_key, received_at, lead_id FROM new CROSS JOIN unnest(person_keys) AS person_key
), remembered AS (
    INSERT INTO idempotency (scope, key, fingerprint, lead_id, receipt, expires_at)
    SELECT scope, decode(key, 'base64'), fingerprint, lead_id, decode(receipt, 'base64'), expires_at FROM new
)
INSERT INTO delivery (delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at)
SELECT delivery_id, lead_id, target, kind, decode(content, 'base64'), 'waiting', 0, 0, received_at, received_at
FROM new CROSS JOIN json_to_recordset(deliveries) AS each (delivery_id text, target text, kind text, content text);

-- name: add_delivery
INSERT INTO delivery (delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at)
VALUES (%(delivery_id)s, %(lead_id)s, %(target)s, %(kind)s, %(content)s, 'waiting', 0, 0, %(now)s, %(now)s);

-- name: leads
SELECT
    lead_id, lead.dealer_id, lead.rooftop, listing_id, lead.status, received_at, business, consent_grant.body, receipt,
    snapshot, purged_at,
    appointment_id, appointment.department, appointment.kind, appointment.status, starts_at, ends_at
FROM lead JOIN consent_grant USING (lead_id) LEFT JOIN appointment USING (lead_id)
WHERE %(dealer_id)s::text IS NULL OR lead.dealer_id = %(dealer_id)s
ORDER BY received_at DESC, lead_id DESC LIMIT %(limit)s;

-- name: lead
SELECT
    lead_id, lead.dealer_id, lead.rooftop, listing_id, lead.status, received_at, business, consent_grant.body, receipt,
    snapshot, purged_at,
    appointment_id, appointment.department, appointment.kind, appointment.status, starts_at, ends_at
FROM lead JOIN consent_grant USING (lead_id) LEFT JOIN appointment USING (lead_id) WHERE lead_id = %s;

-- name: claim
-- What another process is taking at this moment is passed over, not waited for.
UPDATE delivery SET holder = %(holder)s, next_at = %(until)s, attempts = attempts + 1
WHERE delivery_id IN (
    SELECT delivery_id FROM delivery
    WHERE status = 'waiting' AND next_at <= %(now)s AND target <> ALL(%(without)s::text[])
    ORDER BY next_at, delivery_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
RETURNING
    delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at, settled_at, reason, holder;

-- name: hold
UPDATE delivery SET next_at = %(until)s
WHERE delivery_id = %(delivery_id)s AND status = 'waiting' AND holder = %(holder)s AND turn = %(turn)s;

-- name: settle
UPDATE delivery SET
    status = %(status)s, next_at = coalesce(%(next_at)s, next_at), settled_at = %(settled_at)s, reason = %(reason)s,
    holder = NULL
WHERE delivery_id = %(delivery_id)s AND turn = %(turn)s
  AND (status = 'waiting' AND holder = %(holder)s OR %(status)s = 'delivered' AND status <> 'delivered');

-- name: next_due
SELECT min(next_at) FROM delivery WHERE status = 'waiting';

-- name: deliveries
SELECT
    delivery_id, lead_id, target, kind, content, status, attempts, turn, since, next_at, settled_at, reason, holder
FROM delivery WHERE lead_id = ANY(%s::text[]) ORDER BY delivery_id;

-- name: resend
UPDATE delivery SET
    turn = turn + (attempts > 0)::integer, attempts = 0, status = 'waiting', since = %(now)s, next_at = %(now)s,
    settled_at = NULL, reason = NULL, holder = NULL
WHERE lead_id = %(lead_id)s
  AND CASE WHEN %(target)s::text IS NULL THEN kind <> 'event' OR status <> 'delivered' ELSE target = %(target)s END
  AND EXISTS (SELECT FROM lead WHERE lead.lead_id = delivery.lead_id AND purged_at IS NULL);

-- name: delivery_counts
SELECT status, count(*) FROM delivery WHERE status <> 'delivered' GROUP BY status;

-- name: standing
SELECT lead.status, appointment_id, appointment.status
FROM lead LEFT JOIN appointment USING (lead_id) WHERE lead_id = %s FOR UPDATE OF lead;

-- name: calendar_of
SELECT dealer_id, rooftop, department FROM appointment WHERE lead_id = %s;

-- name: set_lead_status
UPDATE lead SET status = %(status)s WHERE lead_id = %(lead_id)s;

-- name: set_appointment_status
UPDATE appointment SET
    status = %(status)s, starts_at = coalesce(%(start)s, starts_at), ends_at = coalesce(%(end)s, ends_at)
WHERE lead_id = %(lead_id)s;

-- name: add_status_change
INSERT INTO status_change (lead_id, entity_id, previous, status, changed_at) VALUES (%s, %s, %s, %s, %s);

-- name: status_changes
SELECT lead_id, entity_id, previous, status, changed_at FROM status_change WHERE lead_id = %s ORDER BY change_number;

-- name: to_purge
SELECT lead_id FROM lead
WHERE purged_at IS NULL AND received_at < %(before)s
  AND (%(dealer_id)s::text IS NULL OR dealer_id = %(dealer_id)s)
ORDER BY received_at, lead_id LIMIT %(limit)s FOR UPDATE;

-- name: count_to_purge
SELECT count(*) FROM lead
WHERE purged_at IS NULL AND received_at < %(before)s
  AND (%(dealer_id)s::text IS NULL OR dealer_id = %(dealer_id)s);

-- name: purge_lead
UPDATE lead SET business = '', snapshot = NULL, caller = NULL, purged_at = %(now)s WHERE lead_id = ANY(%(leads)s);

-- name: purge_persons
DELETE FROM lead_person WHERE lead_id = ANY(%(leads)s);

-- name: purge_deliveries
UPDATE delivery SET status = 'parked', settled_at = %(now)s, reason = %(reason)s, holder = NULL
WHERE lead_id = ANY(%(leads)s) AND status = 'waiting';

-- name: proofs_to_purge
SELECT lead_id FROM lead
WHERE purged_at IS NOT NULL AND received_at < %(proofs_before)s
  AND (%(dealer_id)s::text IS NULL OR dealer_id = %(dealer_id)s)
ORDER BY received_at, lead_id LIMIT %(limit)s FOR UPDATE;

-- name: count_proofs_to_purge
SELECT count(*) FROM lead
WHERE (purged_at IS NOT NULL OR received_at < %(before)s) AND received_at < %(proofs_before)s
  AND (%(dealer_id)s::text IS NULL OR dealer_id = %(dealer_id)s);

-- name: forget_changes
DELETE FROM status_change WHERE lead_id = ANY(%(leads)s);

-- name: forget_deliveries
DELETE FROM delivery WHERE lead_id = ANY(%(leads)s);

-- name: forget_appointment
DELETE FROM appointment WHERE lead_id = ANY(%(leads)s);

-- name: forget_key
DELETE FROM idempotency WHERE lead_id = ANY(%(leads)s);

-- name: forget_grant
DELETE FROM consent_grant WHERE lead_id = ANY(%(leads)s);

-- name: forget_lead
DELETE FROM lead WHERE lead_id = ANY(%(leads)s);

-- name: count_expired_keys
SELECT count(*) FROM idempotency WHERE expires_at <= %s;

-- name: sweep_keys
DELETE FROM idempotency WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency WHERE expires_at <= %(now)s ORDER BY expires_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
);

-- name: sweep_persons
DELETE FROM lead_person WHERE (dealer_id, person_key, received_at, lead_id) IN (
    SELECT dealer_id, person_key, received_at, lead_id FROM lead_person
    WHERE received_at < %(before)s ORDER BY received_at LIMIT %(limit)s
);

-- name: to_purge_one
SELECT lead_id FROM lead WHERE lead_id = %(lead_id)s AND purged_at IS NULL FOR UPDATE;

-- name: one_to_purge
SELECT lead_id FROM lead WHERE lead_id = %(lead_id)s AND purged_at IS NULL;

-- name: add_grant
INSERT INTO consent_grant VALUES (%s, %s);

-- name: lead_fields
SELECT lead_id, business, body FROM lead JOIN consent_grant USING (lead_id)
WHERE lead_id > %(after)s ORDER BY lead_id LIMIT %(limit)s;

-- name: lead_fields_unlike
SELECT lead_id, business, body FROM lead JOIN consent_grant USING (lead_id)
WHERE lead_id > %(after)s
  AND (business <> '' AND substring(business FOR length(%(beginning)s::bytea)) <> %(beginning)s::bytea
       OR substring(body FOR length(%(beginning)s::bytea)) <> %(beginning)s::bytea)
ORDER BY lead_id LIMIT %(limit)s;

-- name: count_fields_unlike
SELECT count(*) FROM lead JOIN consent_grant USING (lead_id)
WHERE business <> '' AND substring(business FOR length(%(beginning)s::bytea)) <> %(beginning)s::bytea
   OR substring(body FOR length(%(beginning)s::bytea)) <> %(beginning)s::bytea;

-- name: hold_leads
-- What another transaction works on is left for the next time, so that nobody waits for one another in a circle.
SELECT lead_id FROM lead WHERE lead_id = ANY(%s) ORDER BY lead_id FOR UPDATE SKIP LOCKED;

-- name: put_business
UPDATE lead SET business = %(new)s WHERE lead_id = %(lead_id)s AND business = %(old)s;

-- name: take_grant
DELETE FROM consent_grant WHERE lead_id = %(lead_id)s AND body = %(old)s;
