-- Orders, for people who look with SQL. Statuses of reservations are as they were last written: a hold whose time is over is
-- one until somebody has looked.
CREATE VIEW slots AS
SELECT id, tenant AS tenant_id, livemode,
       (facts::json ->> 'capacity')::integer AS capacity,
       facts::json ->> 'starts_at' AS starts_at,
       facts::json ->> 'title' AS title,
       to_timestamp(created_at / 1000.0) AS created_at
FROM state WHERE kind = 'slot';

CREATE VIEW reservations AS
SELECT id, status, tenant AS tenant_id, customer AS customer_id, livemode,
       to_timestamp(created_at / 1000.0) AS created_at,
       to_timestamp(changed_at / 1000.0) AS changed_at
FROM state WHERE kind = 'reservation';

CREATE VIEW fulfilments AS
SELECT id, status, tenant AS tenant_id, customer AS customer_id, livemode,
       to_timestamp(created_at / 1000.0) AS created_at,
       to_timestamp(changed_at / 1000.0) AS changed_at
FROM state WHERE kind = 'fulfilment';

CREATE VIEW cases AS
SELECT id, status, attention AS "trigger", tenant AS tenant_id, livemode,
       to_timestamp(created_at / 1000.0) AS created_at,
       to_timestamp(changed_at / 1000.0) AS changed_at
FROM state WHERE kind = 'case';

-- What is recorded here is written once and never changed, so its facts may be read as they are.
CREATE VIEW compensation_logs AS
SELECT id,
       status AS type,
       attention AS "trigger",
       facts::json ->> 'reservation' AS reservation_id,
       facts::json ->> 'payment' AS payment_id,
       facts::json ->> 'fulfilment' AS fulfilment_id,
       amount,
       currency,
       facts::json ->> 'resolved_by' AS resolved_by,
       facts::json ->> 'notes' AS notes,
       to_timestamp(created_at / 1000.0) AS created_at
FROM state WHERE kind = 'compensation';
