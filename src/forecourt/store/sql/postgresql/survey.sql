-- name: survey_place
SELECT current_database(), current_schema(), to_regclass('migration') IS NOT NULL;

-- name: survey_migrations
SELECT number, name FROM migration ORDER BY number;

-- name: survey_stock
SELECT dealer_id, rooftop, count(*) FROM listing
GROUP BY dealer_id, rooftop ORDER BY dealer_id, rooftop LIMIT %(limit)s;

-- name: survey_leads
-- One walk over the newest leads for each beginning of a day, of which there are as many as time zones.
SELECT began, dealer_id, rooftop, count(*) FROM unnest(%(starts)s::timestamptz[]) AS began
JOIN lead ON received_at >= began GROUP BY began, dealer_id, rooftop ORDER BY began, dealer_id, rooftop
LIMIT %(limit)s;

-- name: survey_deliveries
SELECT target, delivery.status, count(*), min(since), (array_agg(reason ORDER BY since, delivery_id))[1]
FROM delivery JOIN lead USING (lead_id)
WHERE delivery.status <> 'delivered' AND purged_at IS NULL
GROUP BY target, delivery.status ORDER BY target, delivery.status LIMIT %(limit)s;

-- name: survey_keys
SELECT count(*) - count(revoked_at), count(revoked_at) FROM api_key;

-- name: survey_totals
SELECT (SELECT count(*) FROM lead), (SELECT count(*) FROM listing);
