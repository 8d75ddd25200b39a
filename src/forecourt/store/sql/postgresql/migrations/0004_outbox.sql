-- What the lead's mapping needs of its listing, which may be gone by then; and when its personal data was deleted.
ALTER TABLE lead ADD COLUMN snapshot bytea;
ALTER TABLE lead ADD COLUMN purged_at timestamptz;
CREATE INDEX lead_person_by_lead ON lead_person (lead_id);
CREATE INDEX lead_person_by_time ON lead_person (received_at);
CREATE INDEX idempotency_by_lead ON idempotency (lead_id);
CREATE INDEX appointment_by_lead ON appointment (lead_id);

-- The outbox. A delivery that is held has its holder, and in next_at the end of the holder's time.
CREATE TABLE delivery (
    delivery_id text COLLATE "C" PRIMARY KEY,
    lead_id     text COLLATE "C" NOT NULL REFERENCES lead,
    target      text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    content     bytea,
    status      text COLLATE "C" NOT NULL CHECK (status IN ('waiting', 'delivered', 'parked')),
    attempts    integer NOT NULL,
    turn        integer NOT NULL,
    since       timestamptz NOT NULL,
    next_at     timestamptz NOT NULL,
    settled_at  timestamptz,
    reason      text COLLATE "C",
    holder      text COLLATE "C"
);
CREATE INDEX delivery_by_lead ON delivery (lead_id);
CREATE INDEX delivery_due ON delivery (next_at, delivery_id) WHERE status = 'waiting';
CREATE INDEX delivery_unsettled ON delivery (status) WHERE status <> 'delivered';

-- What the dealer has said since of a lead or its appointment.
CREATE TABLE status_change (
    change_number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lead_id       text COLLATE "C" NOT NULL REFERENCES lead,
    entity_id     text COLLATE "C" NOT NULL,
    previous      text COLLATE "C" NOT NULL,
    status        text COLLATE "C" NOT NULL,
    changed_at    timestamptz NOT NULL
);
CREATE INDEX status_change_by_lead ON status_change (lead_id);
