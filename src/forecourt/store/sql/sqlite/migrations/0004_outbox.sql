-- What the lead's mapping needs of its listing, which may be gone by then; and when its personal data was deleted.
ALTER TABLE lead ADD COLUMN snapshot BLOB;
ALTER TABLE lead ADD COLUMN purged_at TEXT;
CREATE INDEX lead_by_arrival ON lead (received_at, lead_id);
CREATE INDEX lead_person_by_lead ON lead_person (lead_id);
CREATE INDEX lead_person_by_time ON lead_person (received_at);
CREATE INDEX idempotency_by_lead ON idempotency (lead_id);
CREATE INDEX appointment_by_lead ON appointment (lead_id);

-- The outbox. A delivery that is held has its holder, and in next_at the end of the holder's time.
CREATE TABLE delivery (
    delivery_id TEXT PRIMARY KEY,
    lead_id     TEXT NOT NULL REFERENCES lead (lead_id),
    target      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    content     BLOB,
    status      TEXT NOT NULL CHECK (status IN ('waiting', 'delivered', 'parked')),
    attempts    INTEGER NOT NULL,
    turn        INTEGER NOT NULL,
    since       TEXT NOT NULL,
    next_at     TEXT NOT NULL,
    settled_at  TEXT,
    reason      TEXT,
    holder      TEXT
) WITHOUT ROWID;
CREATE INDEX delivery_by_lead ON delivery (lead_id);
CREATE INDEX delivery_due ON delivery (next_at) WHERE status = 'waiting';
CREATE INDEX delivery_unsettled ON delivery (status) WHERE status <> 'delivered';

-- What the dealer has said since of a lead or its appointment.
CREATE TABLE status_change (
    change_number INTEGER PRIMARY KEY,
    lead_id       TEXT NOT NULL REFERENCES lead (lead_id),
    entity_id     TEXT NOT NULL,
    previous      TEXT NOT NULL,
    status        TEXT NOT NULL,
    changed_at    TEXT NOT NULL
);
CREATE INDEX status_change_by_lead ON status_change (lead_id);
