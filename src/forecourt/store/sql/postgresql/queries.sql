-- name: lock
SELECT pg_advisory_xact_lock(%s::bigint);

-- name: lock_each
-- One after the other, in the order of the array.
SELECT pg_advisory_xact_lock(number) FROM unnest(%s::bigint[]) AS number;

-- name: lock_shared
SELECT pg_advisory_xact_lock_shared(%s::bigint);

-- name: make_migrations
CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL);

-- name: migration
SELECT 1 FROM migration WHERE number = %s;

-- name: add_migration
INSERT INTO migration VALUES (%s, %s, now());

-- name: check
-- Takes a lock that no import waits for, and with it a transaction number: a server that cannot write refuses that.
SELECT generation FROM inventory FOR KEY SHARE;

-- name: generation
SELECT generation FROM inventory;

-- name: next_generation
UPDATE inventory SET generation = generation + 1 RETURNING generation;

-- name: keep_departing
INSERT INTO past_listing (listing_id, dealer_id, from_generation, until_generation, body, replaced_at)
SELECT listing_id, dealer_id, generation, %(generation)s, body, %(now)s FROM listing
WHERE dealer_id = %(dealer_id)s AND (%(rooftop)s::text IS NULL OR rooftop = %(rooftop)s)
  AND NOT EXISTS (SELECT FROM staged WHERE staged.listing_id = listing.listing_id);

-- name: keep_changing
INSERT INTO past_listing (listing_id, dealer_id, from_generation, until_generation, body, replaced_at)
SELECT listing_id, listing.dealer_id, listing.generation, %(generation)s, listing.body, %(now)s
FROM listing JOIN staged USING (listing_id) WHERE staged.digest <> listing.digest;

-- name: forget_past
WITH forgotten AS (
    DELETE FROM past_listing WHERE replaced_at < %(kept_since)s RETURNING until_generation
)
UPDATE inventory
SET history_from = greatest(history_from, (SELECT coalesce(max(until_generation), 0) FROM forgotten));

-- name: listings
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation FROM listing ORDER BY listing_id;

-- name: listings_of_dealer
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation FROM listing
WHERE dealer_id = %(dealer_id)s ORDER BY listing_id;

-- name: stock
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation FROM listing
ORDER BY listing_id LIMIT %(limit)s;

-- name: stock_of_dealer
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation FROM listing
WHERE dealer_id = %(dealer_id)s ORDER BY listing_id LIMIT %(limit)s;

-- name: history_from
SELECT history_from FROM inventory;

-- name: generations
SELECT generation, history_from FROM inventory;

-- name: removed_since
-- In stock at the generation, and not any more.
SELECT listing_id FROM past_listing
WHERE from_generation <= %s AND until_generation > %s
  AND NOT EXISTS (SELECT 1 FROM listing WHERE listing.listing_id = past_listing.listing_id)
ORDER BY listing_id;

-- name: written_since
SELECT listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, generation
FROM listing WHERE generation > %s ORDER BY listing_id;

-- name: past_listings
-- What was changed or removed, as it was, and after it the ids of what was written, new listings among them.
SELECT listing_id, dealer_id, body FROM past_listing
WHERE from_generation <= %(generation)s AND until_generation > %(generation)s AND until_generation <= %(until)s
UNION ALL SELECT listing_id, dealer_id, NULL::bytea FROM past_listing
WHERE from_generation > %(generation)s AND from_generation <= %(until)s
UNION ALL SELECT listing_id, dealer_id, NULL::bytea FROM listing
WHERE generation > %(generation)s AND generation <= %(until)s
LIMIT %(limit)s;

-- name: stage_begin
-- `found` is the generation of the listing that was met unchanged, whose body is not staged.
CREATE TEMP TABLE staged AS SELECT 0::bigint AS position, 0::bigint AS found, listing.* FROM listing WITH NO DATA;

-- name: is_empty
SELECT NOT EXISTS (SELECT FROM listing);

-- name: known
SELECT listing_id, digest, generation FROM listing WHERE listing_id = ANY(%s::text[]);

-- name: stage
COPY staged (position, found, listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, digest)
FROM STDIN (FORMAT BINARY);

-- name: stage_last
-- Of several with one id the last counts.
DELETE FROM staged USING (
    SELECT listing_id, max(position) AS last FROM staged GROUP BY listing_id HAVING count(*) > 1
) AS several
WHERE staged.listing_id = several.listing_id AND staged.position < several.last;

-- name: stage_end
ANALYZE staged (listing_id);

-- name: compare
-- imported, changed, unchanged, removed
SELECT
    count(*),
    count(listing.listing_id) FILTER (WHERE staged.digest <> listing.digest),
    count(listing.listing_id) FILTER (WHERE staged.digest = listing.digest),
    (
        SELECT count(*) FROM listing
        WHERE dealer_id = %(dealer_id)s AND (%(rooftop)s::text IS NULL OR rooftop = %(rooftop)s)
          AND NOT EXISTS (SELECT FROM staged WHERE staged.listing_id = listing.listing_id)
    )
FROM staged LEFT JOIN listing USING (listing_id);

-- name: depart
INSERT INTO departed (dealer_id, kind, value, left_at)
SELECT DISTINCT dealer_id, kind, value, %(now)s::timestamptz
FROM listing, LATERAL (VALUES ('vin', vin), ('vehicle_id', vehicle_id), ('stock', stock)) AS named (kind, value)
WHERE value IS NOT NULL
  AND dealer_id = %(dealer_id)s AND (%(rooftop)s::text IS NULL OR rooftop = %(rooftop)s)
  AND NOT EXISTS (SELECT FROM staged WHERE staged.listing_id = listing.listing_id)
ON CONFLICT (dealer_id, kind, value) DO UPDATE SET left_at = excluded.left_at;

-- name: remove_departed
DELETE FROM listing
WHERE dealer_id = %(dealer_id)s AND (%(rooftop)s::text IS NULL OR rooftop = %(rooftop)s)
  AND NOT EXISTS (SELECT FROM staged WHERE staged.listing_id = listing.listing_id);

-- name: take_staged
-- Only what differs: ON CONFLICT would lock, and so write, every row that it meets. What was met unchanged and has been
-- replaced by another import since is in the past of that one, and the statement fails if it is forgotten there.
INSERT INTO listing (listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body, digest, generation)
SELECT
    listing_id, staged.dealer_id, staged.rooftop, staged.vin, staged.vehicle_id, staged.stock,
    coalesce(
        staged.body,
        (
            SELECT body FROM past_listing
            WHERE from_generation = staged.found AND past_listing.listing_id = staged.listing_id
        )
    ),
    staged.digest, %(generation)s
FROM staged LEFT JOIN listing USING (listing_id)
WHERE listing.digest IS NULL OR staged.digest <> listing.digest
ON CONFLICT (listing_id) DO UPDATE SET
    dealer_id = excluded.dealer_id, rooftop = excluded.rooftop, vin = excluded.vin,
    vehicle_id = excluded.vehicle_id, stock = excluded.stock, body = excluded.body, digest = excluded.digest,
    generation = excluded.generation;

-- name: remember_departed
INSERT INTO departed (dealer_id, kind, value, left_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (dealer_id, kind, value) DO UPDATE SET left_at = excluded.left_at;

-- name: has_departed
SELECT EXISTS (
    SELECT FROM departed JOIN unnest(%s::text[], %s::text[]) AS named (kind, value) USING (kind, value)
    WHERE dealer_id = ANY(%s::text[])
);

-- name: secrets
SELECT key_id, value, made_at FROM secret WHERE purpose = %s ORDER BY made_at DESC, key_id DESC;

-- name: add_secret
INSERT INTO secret (purpose, key_id, value, made_at) VALUES (%s, %s, %s, %s);

-- name: drop_secret
DELETE FROM secret WHERE purpose = %s AND key_id = %s;

-- name: lease
INSERT INTO lease (name, holder, held_until) VALUES (%(name)s, %(holder)s, %(until)s)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE lease.holder = excluded.holder OR lease.held_until <= %(now)s;

-- name: release
DELETE FROM lease WHERE name = %s AND holder = %s;

-- name: feed_state
SELECT source, checked_at, imported_at, etag, last_modified, outcome, report FROM feed_state WHERE source = %s;

-- name: feed_states
SELECT source, checked_at, imported_at, etag, last_modified, outcome, report FROM feed_state ORDER BY source;

-- name: keep_feed_state
INSERT INTO feed_state (source, checked_at, imported_at, etag, last_modified, outcome, report)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (source) DO UPDATE SET
    checked_at = excluded.checked_at, imported_at = excluded.imported_at, etag = excluded.etag,
    last_modified = excluded.last_modified, outcome = excluded.outcome, report = excluded.report;

-- name: add_api_key
INSERT INTO api_key (key_id, digest, name, sellers, requests, seconds, made_at) VALUES (%s, %s, %s, %s, %s, %s, %s);

-- name: api_keys
SELECT key_id, digest, name, sellers, requests, seconds, made_at, revoked_at FROM api_key ORDER BY key_id;

-- name: revoke_api_key
UPDATE api_key SET revoked_at = %s WHERE key_id = %s AND revoked_at IS NULL;
