-- 16 bytes of SHA-256 of where a listing stands and what it says, by which an unchanged one is known without its body.
ALTER TABLE listing ADD COLUMN digest bytea;
UPDATE listing SET digest = substring(sha256(convert_to(rooftop, 'UTF8') || '\x00'::bytea || body) FOR 16);
ALTER TABLE listing ALTER COLUMN digest SET NOT NULL;

-- An import finds by this what it has met and another import has replaced since.
CREATE INDEX past_listing_by_origin ON past_listing (from_generation, listing_id);
DROP INDEX past_listing_by_beginning;
