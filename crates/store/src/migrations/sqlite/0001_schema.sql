-- One row per living process, and one for each that was given up for as long as its number is not needed: it may only be
-- paused. The number, epoch modulo 1,024, stands in every id that a node makes, so no two may have the same.
CREATE TABLE node (
    epoch     INTEGER PRIMARY KEY AUTOINCREMENT,
    beat      INTEGER NOT NULL,
    joined_at INTEGER NOT NULL,
    ended     INTEGER -- the newest epoch when it was given up; NULL while it lives
) STRICT;
CREATE UNIQUE INDEX node_number ON node (epoch % 1024);

-- Which event came before: 16 bytes, the provider's time and a hash. The newest keys wait, in the order they came, in
-- one of two tables; when there are many they are merged with the others, and the other table takes the new ones.
CREATE TABLE dedupe_merged (
    key BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE dedupe_fresh_0 (
    seq INTEGER PRIMARY KEY,
    key BLOB NOT NULL
) STRICT;
CREATE TABLE dedupe_fresh_1 (
    seq INTEGER PRIMARY KEY,
    key BLOB NOT NULL
) STRICT;
-- While they are merged, keys stand in both.
CREATE VIEW dedupe AS
SELECT key, seq FROM dedupe_merged
UNION SELECT key, seq FROM dedupe_fresh_0
UNION SELECT key, seq FROM dedupe_fresh_1;

-- Which body came first under an id: ids that the provider's proof does not cover, and transmissions that cover the body
-- too loosely. 16 bytes each of a hash.
CREATE TABLE first_body (
    id     BLOB PRIMARY KEY,
    digest BLOB NOT NULL,
    seq    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX first_body_seq ON first_body (seq);

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
    body        ANY NOT NULL, -- text when it is UTF-8, else a blob
    digest      BLOB, -- of the body, where the proof does not cover the id: it is part of the dedupe key
    id_reused   INTEGER NOT NULL DEFAULT 0 -- another body had come under the same id
) STRICT;

-- Unfinished work, and nothing else: small and short-lived. An event's first job has the event's number.
CREATE TABLE job (
    id      INTEGER PRIMARY KEY,
    lane    TEXT NOT NULL,
    home    TEXT, -- the lane it was in before it became suspect
    due_at  INTEGER NOT NULL,
    owner   INTEGER, -- epoch of the node that runs it
    attempt INTEGER NOT NULL DEFAULT 0,
    base    INTEGER NOT NULL DEFAULT 0, -- attempts that are no tries: before it was last revived, or cut off
    crashes INTEGER NOT NULL DEFAULT 0,
    started INTEGER NOT NULL DEFAULT 0, -- its run was announced: a crash from here on is its own
    parked  INTEGER NOT NULL DEFAULT 0, -- found waiting behind another of its fifo; freed when its turn comes
    kind    TEXT NOT NULL,
    event   INTEGER, -- what it is about
    fifo    TEXT,
    payload TEXT NOT NULL
) STRICT;
CREATE INDEX job_ready ON job (lane, due_at, id) WHERE owner IS NULL AND parked = 0;
CREATE INDEX job_fifo ON job (fifo, id) WHERE fifo IS NOT NULL;

-- Which fact made which job. A key makes one job, for as long as it is kept.
CREATE TABLE effect (
    key TEXT PRIMARY KEY,
    job INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How each job ended. Without a lane it was the settling of the event that has its number.
CREATE TABLE outcome (
    job      INTEGER PRIMARY KEY,
    result   TEXT NOT NULL,
    note     TEXT,
    at       INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lane     TEXT,
    event    INTEGER,
    payment  TEXT, -- what the event turned out to be about
    billing  TEXT,
    tenant   TEXT
) STRICT;
CREATE INDEX outcome_payment ON outcome (payment, job) WHERE payment IS NOT NULL;
CREATE INDEX outcome_tenant ON outcome (tenant, job) WHERE tenant IS NOT NULL;

-- Each call to somebody outside, and what came back.
CREATE TABLE attempt (
    job     INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    took_ms INTEGER NOT NULL,
    status  INTEGER,
    reason  TEXT, -- null when it went well
    error   TEXT,
    headers TEXT,
    body    BLOB,
    PRIMARY KEY (job, n)
) STRICT, WITHOUT ROWID;

-- What waits for a person, with all that is needed to do it again.
CREATE TABLE dead (
    job      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    class    TEXT NOT NULL,
    reason   TEXT NOT NULL,
    error    TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    crashes  INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    lane     TEXT NOT NULL,
    event    INTEGER,
    fifo     TEXT,
    payload  TEXT NOT NULL
) STRICT;
CREATE INDEX dead_event ON dead (event, job);
CREATE INDEX dead_lane ON dead (lane, job);

-- What is remembered of each thing: payments, billings, breakers, … Every write must show the version it was decided
-- on. The columns after the facts are derived from them, and rewritten with them.
CREATE TABLE state (
    kind       TEXT NOT NULL,
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,
    facts      TEXT NOT NULL, -- JSON
    status     TEXT,
    tenant     TEXT,
    customer   TEXT,
    livemode   INTEGER,
    amount     INTEGER,
    currency   TEXT,
    attention  TEXT, -- why a person should look at it
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;
CREATE INDEX state_tenant ON state (kind, tenant, id) WHERE tenant IS NOT NULL;
CREATE INDEX state_customer ON state (kind, customer, id) WHERE customer IS NOT NULL;
CREATE INDEX state_status ON state (kind, status, id) WHERE status IS NOT NULL;
CREATE INDEX state_attention ON state (kind, id) WHERE attention IS NOT NULL;
CREATE INDEX state_request ON state (changed_at) WHERE kind = 'request';

-- What each thing is called. A name leads to one thing.
CREATE TABLE name (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    id   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX name_request ON name (id) WHERE kind = 'request';

-- Lines of the books. Those of one change sum to zero; what an account holds is the sum of its lines.
CREATE TABLE posting (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    account  TEXT NOT NULL,
    currency TEXT NOT NULL,
    livemode INTEGER,
    amount   INTEGER NOT NULL, -- in the currency's smallest unit
    payment  TEXT NOT NULL,
    cause    TEXT NOT NULL
) STRICT;
CREATE INDEX posting_account ON posting (account, number);
CREATE INDEX posting_payment ON posting (payment, number);

-- How many events an hour brought, kept when the events are gone.
CREATE TABLE hourly (
    hour   INTEGER NOT NULL,
    source TEXT NOT NULL,
    type   TEXT NOT NULL,
    status TEXT NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (hour, source, type, status)
) STRICT, WITHOUT ROWID;

-- Who did what to which thing. Entries that were written together hang on one link.
CREATE TABLE audit (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    actor       TEXT, -- null is the system itself
    role        TEXT,
    action      TEXT NOT NULL,
    target_kind TEXT NOT NULL,
    target_id   TEXT NOT NULL,
    tenant      TEXT,
    event       INTEGER,
    details     TEXT NOT NULL, -- JSON
    digest      BLOB NOT NULL,
    chain       INTEGER NOT NULL,
    n           INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_target ON audit (target_id, number);
CREATE INDEX audit_tenant ON audit (tenant, number) WHERE tenant IS NOT NULL;
CREATE INDEX audit_actor ON audit (actor, number) WHERE actor IS NOT NULL;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_link ON audit (chain, n);

-- Each holds the hash of the one before it, so that nothing can be changed, removed or slipped in unseen.
CREATE TABLE link (
    chain    INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    previous BLOB NOT NULL,
    hash     BLOB NOT NULL,
    PRIMARY KEY (chain, n)
) STRICT, WITHOUT ROWID;

-- Refused requests, the newest few thousand lines. Those alike within an hour are one; each network has a share of the lines.
CREATE TABLE rejection (
    seq        INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    hour       INTEGER NOT NULL,
    source     TEXT NOT NULL,
    peer       TEXT NOT NULL,
    network    TEXT NOT NULL,
    reason     TEXT NOT NULL,
    detail     TEXT NOT NULL,
    request_id TEXT NOT NULL,
    count      INTEGER NOT NULL,
    UNIQUE (source, reason, network, hour)
) STRICT;
CREATE INDEX rejection_network ON rejection (network, seq);

-- For people who look with SQL: what came in, and what Sekisho announced itself (source 'sekisho'). billing_id,
-- tenant_id and payment_id are null until the event is settled; what leads to something deleted is null again.
CREATE VIEW webhook_events AS
SELECT event.seq AS id,
       event.event_id,
       event.type AS event_type,
       event.source,
       CASE WHEN NOT EXISTS (
           SELECT 1 FROM state AS gone WHERE gone.kind = 'billing' AND gone.id = outcome.billing AND gone.status = 'deleted'
       ) THEN outcome.billing END AS billing_id,
       CASE WHEN NOT EXISTS (
           SELECT 1 FROM state AS gone WHERE gone.kind = 'tenant' AND gone.id = outcome.tenant AND gone.status = 'deleted'
       ) THEN outcome.tenant END AS tenant_id,
       outcome.payment AS payment_id,
       event.body AS payload,
       CASE WHEN dead.job IS NOT NULL THEN 'failed'
            WHEN outcome.result = 'discarded' THEN 'skipped'
            ELSE coalesce(outcome.result, 'received') END AS status,
       coalesce(dead.error, outcome.note) AS error_message,
       strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(dead.at, outcome.at) / 1000.0, 'unixepoch') AS processed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', event.received_at / 1000.0, 'unixepoch') AS created_at
FROM event
LEFT JOIN outcome ON outcome.job = event.seq
LEFT JOIN dead ON dead.job = (SELECT min(job) FROM dead WHERE dead.event = event.seq)
WHERE event.source <> 'fetched';

-- "Which events need reprocessing?" One row per dead letter; class says whether trying again can help.
CREATE VIEW failed_webhook_events AS
SELECT event.event_id,
       outcome.payment AS payment_id,
       event.body AS payload,
       dead.error,
       dead.class,
       dead.attempts,
       strftime('%Y-%m-%dT%H:%M:%fZ', event.received_at / 1000.0, 'unixepoch') AS created_at,
       dead.job AS id,
       dead.reason,
       dead.lane,
       event.source,
       event.type AS event_type,
       strftime('%Y-%m-%dT%H:%M:%fZ', dead.at / 1000.0, 'unixepoch') AS failed_at
FROM dead
JOIN event ON event.seq = dead.event
LEFT JOIN outcome ON outcome.job = event.seq;

-- A customer is kept under its tenant and its id: crates/core/src/notification/directory/key.rs says how.
CREATE VIEW payments AS
SELECT id,
       status,
       amount,
       currency,
       CASE WHEN NOT EXISTS (
           SELECT 1 FROM state AS gone WHERE gone.kind = 'tenant' AND gone.id = state.tenant AND gone.status = 'deleted'
       ) THEN state.tenant END AS tenant_id,
       CASE WHEN NOT EXISTS (
           SELECT 1 FROM state AS gone WHERE gone.kind = 'customer' AND gone.status = 'deleted'
           AND gone.id = replace(replace(coalesce(state.tenant, ''), '%', '%25'), '/', '%2F') || '/' || state.customer
       ) THEN state.customer END AS customer_id,
       livemode,
       attention,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch') AS changed_at
FROM state WHERE kind = 'payment' AND status NOT IN ('merged', 'unheard');

CREATE VIEW billings AS
SELECT id,
       status,
       amount,
       currency,
       CASE WHEN NOT EXISTS (
           SELECT 1 FROM state AS gone WHERE gone.kind = 'tenant' AND gone.id = state.tenant AND gone.status = 'deleted'
       ) THEN state.tenant END AS tenant_id,
       CASE WHEN NOT EXISTS (
           SELECT 1 FROM state AS gone WHERE gone.kind = 'customer' AND gone.status = 'deleted'
           AND gone.id = replace(replace(coalesce(state.tenant, ''), '%', '%25'), '/', '%2F') || '/' || state.customer
       ) THEN state.customer END AS customer_id,
       livemode,
       attention,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch') AS changed_at
FROM state WHERE kind = 'billing' AND status NOT IN ('deleted', 'merged', 'unheard');
