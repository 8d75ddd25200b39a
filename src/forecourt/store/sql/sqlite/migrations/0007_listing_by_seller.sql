-- An import asks for one seller's listings, of a network's hundreds of thousands. The ids come in order with it: the key
-- of a table without rowids is at the end of every index.
CREATE INDEX listing_by_seller ON listing (dealer_id);
