-- Inventory: what is in stock, and what once was.
CREATE TABLE listing (
    listing_id TEXT PRIMARY KEY,
    dealer_id  TEXT NOT NULL,
    rooftop    TEXT NOT NULL,
    vin        TEXT,
    vehicle_id TEXT,
    stock      TEXT,
    body       BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX listing_by_rooftop ON listing (dealer_id, rooftop);

-- Identifiers of listings that left, so that "sold" and "never was" get different answers.
CREATE TABLE departed (
    dealer_id  TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('vin', 'vehicle_id', 'stock')),
    value      TEXT NOT NULL,
    left_at    TEXT NOT NULL,
    PRIMARY KEY (dealer_id, kind, value)
) WITHOUT ROWID;

-- One row: a number that grows with every change of the inventory.
CREATE TABLE inventory (
    only_row   INTEGER PRIMARY KEY CHECK (only_row = 1),
    generation INTEGER NOT NULL
);
INSERT INTO inventory VALUES (1, 0);

-- Leads. The grant stands beside its lead, is written once and never changed.
CREATE TABLE lead (
    lead_id      TEXT PRIMARY KEY,
    dealer_id    TEXT NOT NULL,
    rooftop      TEXT,
    listing_id   TEXT,
    status       TEXT NOT NULL,
    received_at  TEXT NOT NULL,
    caller       TEXT,
    vehicle_key  TEXT NOT NULL,
    business     BLOB NOT NULL,
    receipt      BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX lead_by_time ON lead (dealer_id, received_at);

CREATE TABLE consent_grant (
    lead_id      TEXT PRIMARY KEY REFERENCES lead (lead_id),
    body         BLOB NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER consent_grant_is_never_altered BEFORE UPDATE ON consent_grant
BEGIN
    SELECT RAISE(ABORT, 'a consent grant is never altered');
END;

CREATE TABLE lead_person (
    dealer_id    TEXT NOT NULL,
    person_key   TEXT NOT NULL,
    received_at  TEXT NOT NULL,
    lead_id      TEXT NOT NULL REFERENCES lead (lead_id),
    PRIMARY KEY (dealer_id, person_key, received_at, lead_id)
) WITHOUT ROWID;

CREATE TABLE idempotency (
    scope        TEXT NOT NULL,
    key          TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,
    lead_id      TEXT NOT NULL REFERENCES lead (lead_id),
    receipt      BLOB NOT NULL,
    expires_at   TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);

-- Appointments that hold a slot: [starts_at, ends_at) in UTC seconds since 1970, of one department of one rooftop.
CREATE TABLE appointment (
    appointment_id TEXT PRIMARY KEY,
    lead_id        TEXT NOT NULL REFERENCES lead (lead_id),
    dealer_id      TEXT NOT NULL,
    rooftop        TEXT NOT NULL,
    department     TEXT NOT NULL,
    kind           TEXT NOT NULL,
    status         TEXT NOT NULL,
    starts_at      INTEGER,
    ends_at        INTEGER
) WITHOUT ROWID;
CREATE INDEX appointment_by_slot ON appointment (dealer_id, rooftop, department, starts_at)
    WHERE status = 'confirmed';

-- Keys that this deployment makes for itself (cursor signatures), newest first in use.
CREATE TABLE secret (
    purpose    TEXT NOT NULL,
    key_id     TEXT NOT NULL,
    value      BLOB NOT NULL,
    made_at    TEXT NOT NULL,
    PRIMARY KEY (purpose, key_id)
) WITHOUT ROWID;
