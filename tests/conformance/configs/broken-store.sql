-- Tables vanish under a running server: what needs them fails for a reason that nobody foresaw.
DROP TABLE departed;
DROP TABLE idempotency;
DROP TABLE appointment;
DROP TABLE lead_person;
DROP TABLE consent_grant;
DROP TABLE lead;
