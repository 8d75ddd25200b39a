-- name: survey_migrations
SELECT number, name FROM migration ORDER BY number;

-- name: survey_stock
SELECT dealer_id, rooftop, count(*) FROM listing
GROUP BY dealer_id, rooftop ORDER BY dealer_id, rooftop LIMIT :limit;

-- name: survey_leads
-- One walk over the newest leads for each beginning of a day, of which there are as many as time zones.
SELECT value, dealer_id, rooftop, count(*) FROM json_each(:starts) CROSS JOIN lead
WHERE received_at >= value GROUP BY value, dealer_id, rooftop ORDER BY value, dealer_id, rooftop LIMIT :limit;

-- name: survey_deliveries
-- Beside min(), SQLite gives the reason of the row that has it.
SELECT target, delivery.status, count(*), min(since), reason FROM delivery JOIN lead USING (lead_id)
WHERE delivery.status <> 'delivered' AND purged_at IS NULL
GROUP BY target, delivery.status ORDER BY target, delivery.status LIMIT :limit;

-- name: survey_keys
SELECT count(*) - count(revoked_at), count(revoked_at) FROM api_key;

-- name: survey_totals
SELECT (SELECT count(*) FROM lead), (SELECT count(*) FROM listing);
