-- Orders, for people who look with SQL. Statuses of reservations are as they were last written: a hold whose time is over is
-- one until somebody has looked.
CREATE VIEW slots AS
SELECT id, tenant AS tenant_id, livemode,
       json_extract(facts, '$.capacity') AS capacity,
       json_extract(facts, '$.starts_at') AS starts_at,
       json_extract(facts, '$.title') AS title,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at
FROM state WHERE kind = 'slot';

CREATE VIEW reservations AS
SELECT id, status, tenant AS tenant_id, customer AS customer_id, livemode,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch') AS changed_at
FROM state WHERE kind = 'reservation';

CREATE VIEW fulfilments AS
SELECT id, status, tenant AS tenant_id, customer AS customer_id, livemode,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch') AS changed_at
FROM state WHERE kind = 'fulfilment';

CREATE VIEW cases AS
SELECT id, status, attention AS "trigger", tenant AS tenant_id, livemode,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch') AS changed_at
FROM state WHERE kind = 'case';

-- What is recorded here is written once and never changed, so its facts may be read as they are.
CREATE VIEW compensation_logs AS
SELECT id,
       status AS type,
       attention AS "trigger",
       json_extract(facts, '$.reservation') AS reservation_id,
       json_extract(facts, '$.payment') AS payment_id,
       json_extract(facts, '$.fulfilment') AS fulfilment_id,
       amount,
       currency,
       json_extract(facts, '$.resolved_by') AS resolved_by,
       json_extract(facts, '$.notes') AS notes,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at
FROM state WHERE kind = 'compensation';
