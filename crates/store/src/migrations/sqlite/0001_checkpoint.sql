-- One row per living process.
CREATE TABLE node (
    epoch     INTEGER PRIMARY KEY AUTOINCREMENT,
    beat      INTEGER NOT NULL,
    joined_at INTEGER NOT NULL
) STRICT;

-- Which event came before: 16 bytes that rise with the provider's clock, so that inserts stay at the edge.
CREATE TABLE dedupe (
    key BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every event as it came. Written once, never updated. Times are milliseconds since 1970.
CREATE TABLE event (
    seq         INTEGER PRIMARY KEY,
    received_at INTEGER NOT NULL,
    source      TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    type        TEXT NOT NULL,
    created_at  INTEGER,
    object_kind TEXT,
    object_id   TEXT,
    account     TEXT,
    livemode    INTEGER,
    trust       TEXT NOT NULL,
    headers     TEXT NOT NULL,
    body        ANY NOT NULL -- text when it is UTF-8, else a blob
) STRICT;

-- Unfinished work, and nothing else: small and short-lived. An event's first job has the event's number.
CREATE TABLE job (
    id      INTEGER PRIMARY KEY,
    lane    TEXT NOT NULL,
    due_at  INTEGER NOT NULL,
    owner   INTEGER, -- epoch of the node that runs it
    attempt INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX job_ready ON job (lane, due_at, id) WHERE owner IS NULL;

-- How each job ended.
CREATE TABLE outcome (
    job    INTEGER PRIMARY KEY,
    result TEXT NOT NULL,
    note   TEXT,
    at     INTEGER NOT NULL
) STRICT;

-- What waits for a person.
CREATE TABLE dead (
    job      INTEGER PRIMARY KEY,
    reason   TEXT NOT NULL,
    error    TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    at       INTEGER NOT NULL
) STRICT;

-- Refused requests, the newest few thousand.
CREATE TABLE rejection (
    seq        INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    source     TEXT NOT NULL,
    peer       TEXT NOT NULL,
    reason     TEXT NOT NULL,
    detail     TEXT NOT NULL,
    request_id TEXT NOT NULL,
    count      INTEGER NOT NULL
) STRICT;

-- For people who look with SQL. billing_id, tenant_id and payment_id are null until settlement fills them.
CREATE VIEW webhook_events AS
SELECT event.seq AS id,
       event.event_id,
       event.type AS event_type,
       event.source,
       NULL AS billing_id,
       NULL AS tenant_id,
       NULL AS payment_id,
       event.body AS payload,
       CASE WHEN dead.job IS NOT NULL THEN 'failed' ELSE coalesce(outcome.result, 'received') END AS status,
       coalesce(dead.error, outcome.note) AS error_message,
       strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(dead.at, outcome.at) / 1000.0, 'unixepoch') AS processed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', event.received_at / 1000.0, 'unixepoch') AS created_at
FROM event
LEFT JOIN outcome ON outcome.job = event.seq
LEFT JOIN dead ON dead.job = event.seq;
