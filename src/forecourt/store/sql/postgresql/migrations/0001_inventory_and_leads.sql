-- Inventory: what is in stock, and what once was. Collation "C" orders ids by code point, as every store does.
CREATE TABLE listing (
    listing_id text COLLATE "C" PRIMARY KEY,
    dealer_id  text COLLATE "C" NOT NULL,
    rooftop    text COLLATE "C" NOT NULL,
    vin        text COLLATE "C",
    vehicle_id text COLLATE "C",
    stock      text COLLATE "C",
    body       bytea NOT NULL
);
CREATE INDEX listing_by_rooftop ON listing (dealer_id, rooftop);

-- Identifiers of listings that left, so that "sold" and "never was" get different answers.
CREATE TABLE departed (
    dealer_id text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL CHECK (kind IN ('vin', 'vehicle_id', 'stock')),
    value     text COLLATE "C" NOT NULL,
    left_at   timestamptz NOT NULL,
    PRIMARY KEY (dealer_id, kind, value)
);

-- One row: a number that grows with every change of the inventory.
CREATE TABLE inventory (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    generation bigint NOT NULL
);
INSERT INTO inventory (generation) VALUES (0);

-- Leads. The grant stands beside its lead, is written once and never changed.
CREATE TABLE lead (
    lead_id     text COLLATE "C" PRIMARY KEY,
    dealer_id   text COLLATE "C" NOT NULL,
    rooftop     text COLLATE "C",
    listing_id  text COLLATE "C",
    status      text COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL,
    caller      text COLLATE "C",
    vehicle_key text COLLATE "C" NOT NULL,
    business    bytea NOT NULL,
    receipt     bytea NOT NULL
);
CREATE INDEX lead_by_time ON lead (received_at, lead_id);
CREATE INDEX lead_by_dealer ON lead (dealer_id, received_at, lead_id);

CREATE TABLE consent_grant (
    lead_id text COLLATE "C" PRIMARY KEY REFERENCES lead,
    body    bytea NOT NULL
);
CREATE FUNCTION refuse_to_alter_a_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a consent grant is never altered';
END
$$;
CREATE TRIGGER consent_grant_is_never_altered BEFORE UPDATE ON consent_grant
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_alter_a_grant();

CREATE TABLE lead_person (
    dealer_id   text COLLATE "C" NOT NULL,
    person_key  text COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL,
    lead_id     text COLLATE "C" NOT NULL REFERENCES lead,
    PRIMARY KEY (dealer_id, person_key, received_at, lead_id)
);

-- The key is chosen by the caller, who may put U+0000 into it: text cannot hold that, bytes (of UTF-8) can.
CREATE TABLE idempotency (
    scope       text COLLATE "C" NOT NULL,
    key         bytea NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    lead_id     text COLLATE "C" NOT NULL REFERENCES lead,
    receipt     bytea NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);

-- Appointments; a confirmed one holds [starts_at, ends_at) of one department of one rooftop.
CREATE TABLE appointment (
    appointment_id text COLLATE "C" PRIMARY KEY,
    lead_id        text COLLATE "C" NOT NULL REFERENCES lead,
    dealer_id      text COLLATE "C" NOT NULL,
    rooftop        text COLLATE "C" NOT NULL,
    department     text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    starts_at      timestamptz,
    ends_at        timestamptz
);
CREATE INDEX appointment_by_slot ON appointment (dealer_id, rooftop, department, starts_at)
    WHERE status = 'confirmed';

-- Keys that this deployment makes for itself (cursor signatures), newest first in use.
CREATE TABLE secret (
    purpose text COLLATE "C" NOT NULL,
    key_id  text COLLATE "C" NOT NULL,
    value   bytea NOT NULL,
    made_at timestamptz NOT NULL,
    PRIMARY KEY (purpose, key_id)
);
