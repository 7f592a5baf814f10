-- One row per living process.
CREATE TABLE node (
    epoch     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    beat      bigint NOT NULL,
    joined_at bigint NOT NULL
);

-- Which event came before: 16 bytes that rise with the provider's clock, so that inserts stay at the edge.
CREATE TABLE dedupe (
    seq bigint NOT NULL,
    key bytea PRIMARY KEY
);

-- Every event as it came. Written once, never updated. Times are milliseconds since 1970. One partition per day,
-- made ahead of time. Fixed widths first: no padding.
CREATE TABLE event (
    seq         bigint PRIMARY KEY,
    received_at bigint NOT NULL,
    created_at  bigint,
    livemode    boolean,
    is_text     boolean NOT NULL, -- the body is UTF-8 without NUL: PostgreSQL can show it as text
    trust       text NOT NULL,
    source      text NOT NULL,
    event_id    text NOT NULL,
    type        text NOT NULL,
    object_kind text,
    object_id   text,
    account     text,
    headers     text NOT NULL,
    body        bytea NOT NULL
) PARTITION BY RANGE (seq);
-- Compressed inside the row; moved out only when it can't fit a page. Out-of-line chunks would cost each event
-- two more rows and index entries. All columns, or the small ones would be moved out to make room for the body.
ALTER TABLE event
    ALTER COLUMN trust SET STORAGE MAIN,
    ALTER COLUMN source SET STORAGE MAIN,
    ALTER COLUMN event_id SET STORAGE MAIN,
    ALTER COLUMN type SET STORAGE MAIN,
    ALTER COLUMN object_kind SET STORAGE MAIN,
    ALTER COLUMN object_id SET STORAGE MAIN,
    ALTER COLUMN account SET STORAGE MAIN,
    ALTER COLUMN headers SET STORAGE MAIN,
    ALTER COLUMN body SET STORAGE MAIN;

-- Unfinished work, and nothing else: small and short-lived, so vacuumed by count and not by share.
-- An event's first job has the event's number.
CREATE TABLE job (
    id      bigint PRIMARY KEY,
    due_at  bigint NOT NULL,
    owner   bigint, -- epoch of the node that runs it
    attempt integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    lane    text NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX job_ready ON job (lane, due_at, id) WHERE owner IS NULL;

-- How each job ended.
CREATE TABLE outcome (
    job    bigint PRIMARY KEY,
    at     bigint NOT NULL,
    result text NOT NULL,
    note   text
);

-- What waits for a person.
CREATE TABLE dead (
    job      bigint PRIMARY KEY,
    at       bigint NOT NULL,
    attempts integer NOT NULL,
    reason   text NOT NULL,
    error    text NOT NULL
);

-- Refused requests, the newest few thousand.
CREATE TABLE rejection (
    seq        bigint PRIMARY KEY,
    at         bigint NOT NULL,
    count      bigint NOT NULL,
    source     text NOT NULL,
    peer       text NOT NULL,
    reason     text NOT NULL,
    detail     text NOT NULL,
    request_id text NOT NULL
);

-- For people who look with SQL. billing_id, tenant_id and payment_id are null until settlement fills them.
CREATE VIEW webhook_events AS
SELECT event.seq AS id,
       event.event_id,
       event.type AS event_type,
       event.source,
       NULL::text AS billing_id,
       NULL::text AS tenant_id,
       NULL::text AS payment_id,
       CASE WHEN event.is_text THEN convert_from(event.body, 'UTF8') ELSE encode(event.body, 'base64') END AS payload,
       CASE WHEN dead.job IS NOT NULL THEN 'failed' ELSE coalesce(outcome.result, 'received') END AS status,
       coalesce(dead.error, outcome.note) AS error_message,
       to_timestamp(coalesce(dead.at, outcome.at) / 1000.0) AS processed_at,
       to_timestamp(event.received_at / 1000.0) AS created_at
FROM event
LEFT JOIN outcome ON outcome.job = event.seq
LEFT JOIN dead ON dead.job = event.seq;
