-- One row per living process, and one for each that was given up for as long as its number is not needed: it may only be
-- paused. The number, epoch modulo 1,024, stands in every id that a node makes, so no two may have the same.
CREATE TABLE node (
    epoch     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    beat      bigint NOT NULL,
    joined_at bigint NOT NULL,
    ended     bigint -- the newest epoch when it was given up; NULL while it lives
);
CREATE UNIQUE INDEX node_number ON node ((epoch % 1024));

-- Which event came before: 16 bytes that rise with the provider's clock, so that inserts stay at the edge.
CREATE TABLE dedupe (
    seq bigint NOT NULL,
    key bytea PRIMARY KEY
);

-- Which body came first under an id: ids that the provider's proof does not cover, and transmissions that cover the body
-- too loosely. 16 bytes each of a hash.
CREATE TABLE first_body (
    seq    bigint NOT NULL,
    id     bytea PRIMARY KEY,
    digest bytea NOT NULL
);
CREATE INDEX first_body_seq ON first_body (seq);

-- Every event as it came. Written once, never updated. Times are milliseconds since 1970. One partition per day,
-- made ahead of time. Fixed widths first: no padding.
CREATE TABLE event (
    seq         bigint PRIMARY KEY,
    received_at bigint NOT NULL,
    created_at  bigint,
    livemode    boolean,
    is_text     boolean NOT NULL, -- the body is UTF-8 without NUL: PostgreSQL can show it as text
    id_reused   boolean NOT NULL DEFAULT false, -- another body had come under the same id
    trust       text NOT NULL,
    source      text NOT NULL,
    event_id    text NOT NULL,
    type        text NOT NULL,
    object_kind text,
    object_id   text,
    account     text,
    digest      bytea, -- of the body, where the proof does not cover the id: it is part of the dedupe key
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

-- Unfinished work, and nothing else: small and short-lived, so vacuumed by count and not by share; room on each page,
-- so that a change can stay there. An event's first job has the event's number. Texts that are compared are compared
-- byte by byte, whatever the database's language.
CREATE TABLE job (
    id      bigint PRIMARY KEY,
    due_at  bigint NOT NULL,
    owner   bigint, -- epoch of the node that runs it
    event   bigint, -- what it is about
    attempt integer NOT NULL DEFAULT 0,
    base    integer NOT NULL DEFAULT 0, -- attempts that are no tries: before it was last revived, or cut off
    crashes integer NOT NULL DEFAULT 0,
    started boolean NOT NULL DEFAULT false, -- its run was announced: a crash from here on is its own
    parked  boolean NOT NULL DEFAULT false, -- found waiting behind another of its fifo; freed when its turn comes
    kind    text NOT NULL,
    lane    text COLLATE "C" NOT NULL,
    home    text COLLATE "C", -- the lane it was in before it became suspect
    fifo    text COLLATE "C",
    payload text NOT NULL
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX job_ready ON job (lane, due_at, id) WHERE owner IS NULL AND NOT parked;
CREATE INDEX job_fifo ON job (fifo, id) WHERE fifo IS NOT NULL;

-- Which fact made which job. A key makes one job, for as long as it is kept.
CREATE TABLE effect (
    job bigint NOT NULL,
    key text COLLATE "C" PRIMARY KEY
);

-- How each job ended. Without a lane it was the settling of the event that has its number.
CREATE TABLE outcome (
    job      bigint PRIMARY KEY,
    at       bigint NOT NULL,
    event    bigint,
    attempts integer NOT NULL,
    result   text NOT NULL,
    note     text,
    lane     text,
    payment  text COLLATE "C", -- what the event turned out to be about
    billing  text,
    tenant   text COLLATE "C"
);
CREATE INDEX outcome_payment ON outcome (payment, job) WHERE payment IS NOT NULL;
CREATE INDEX outcome_tenant ON outcome (tenant, job) WHERE tenant IS NOT NULL;

-- Each call to somebody outside, and what came back.
CREATE TABLE attempt (
    job     bigint NOT NULL,
    at      bigint NOT NULL,
    took_ms bigint NOT NULL,
    n       integer NOT NULL,
    status  integer,
    reason  text, -- null when it went well
    error   text,
    headers text,
    body    bytea,
    PRIMARY KEY (job, n)
);

-- What waits for a person, with all that is needed to do it again.
CREATE TABLE dead (
    job      bigint PRIMARY KEY,
    at       bigint NOT NULL,
    event    bigint,
    attempts integer NOT NULL,
    crashes  integer NOT NULL,
    class    text NOT NULL,
    reason   text NOT NULL,
    error    text NOT NULL,
    kind     text NOT NULL,
    lane     text NOT NULL,
    fifo     text,
    payload  text NOT NULL
);
CREATE INDEX dead_event ON dead (event, job);
CREATE INDEX dead_lane ON dead (lane, job);

-- What is remembered of each thing: payments, billings, breakers, … Every write must show the version it was decided
-- on. The columns after the facts are derived from them, and rewritten with them. Room on each page, so that a change
-- can stay there.
CREATE TABLE state (
    version    bigint NOT NULL,
    created_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    amount     bigint,
    livemode   boolean,
    kind       text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    facts      text NOT NULL, -- JSON
    status     text COLLATE "C",
    tenant     text COLLATE "C",
    customer   text COLLATE "C",
    currency   text COLLATE "C",
    attention  text COLLATE "C", -- why a person should look at it
    PRIMARY KEY (kind, id)
) WITH (fillfactor = 70);
CREATE INDEX state_tenant ON state (kind, tenant, id) WHERE tenant IS NOT NULL;
CREATE INDEX state_customer ON state (kind, customer, id) WHERE customer IS NOT NULL;
CREATE INDEX state_status ON state (kind, status, id) WHERE status IS NOT NULL;
CREATE INDEX state_attention ON state (kind, id) WHERE attention IS NOT NULL;
CREATE INDEX state_request ON state (changed_at) WHERE kind = 'request';

-- What each thing is called. A name leads to one thing.
CREATE TABLE name (
    name text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    id   text COLLATE "C" NOT NULL
);
CREATE INDEX name_request ON name (id) WHERE kind = 'request';

-- Lines of the books. Those of one change sum to zero; what an account holds is the sum of its lines.
CREATE TABLE posting (
    number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       bigint NOT NULL,
    amount   bigint NOT NULL, -- in the currency's smallest unit
    livemode boolean,
    account  text COLLATE "C" NOT NULL,
    currency text COLLATE "C" NOT NULL,
    payment  text COLLATE "C" NOT NULL,
    cause    text NOT NULL
);
CREATE INDEX posting_account ON posting (account, number);
CREATE INDEX posting_payment ON posting (payment, number);

-- How many events an hour brought, kept when the events are gone.
CREATE TABLE hourly (
    hour   bigint NOT NULL,
    events bigint NOT NULL,
    source text COLLATE "C" NOT NULL,
    type   text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    PRIMARY KEY (hour, source, type, status)
);

-- Who did what to which thing. Entries that were written together hang on one link.
CREATE TABLE audit (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          bigint NOT NULL,
    event       bigint,
    chain       bigint NOT NULL,
    n           bigint NOT NULL,
    actor       text COLLATE "C", -- null is the system itself
    role        text,
    action      text COLLATE "C" NOT NULL,
    target_kind text NOT NULL,
    target_id   text COLLATE "C" NOT NULL,
    tenant      text COLLATE "C",
    details     text NOT NULL, -- JSON
    digest      bytea NOT NULL
);
CREATE INDEX audit_target ON audit (target_id, number);
CREATE INDEX audit_tenant ON audit (tenant, number) WHERE tenant IS NOT NULL;
CREATE INDEX audit_actor ON audit (actor, number) WHERE actor IS NOT NULL;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_link ON audit (chain, n);

-- Each holds the hash of the one before it, so that nothing can be changed, removed or slipped in unseen.
CREATE TABLE link (
    chain    bigint NOT NULL,
    n        bigint NOT NULL,
    previous bytea NOT NULL,
    hash     bytea NOT NULL,
    PRIMARY KEY (chain, n)
);
-- Chains belong to connections, and each has its own number.
CREATE SEQUENCE chain;

-- Refused requests, the newest few thousand lines. Those alike within an hour are one; each network has a share of the lines.
CREATE TABLE rejection (
    seq        bigint PRIMARY KEY,
    at         bigint NOT NULL,
    last_at    bigint NOT NULL,
    hour       bigint NOT NULL,
    count      bigint NOT NULL,
    source     text NOT NULL,
    peer       text NOT NULL,
    network    text NOT NULL,
    reason     text NOT NULL,
    detail     text NOT NULL,
    request_id text NOT NULL,
    UNIQUE (source, reason, network, hour)
);
CREATE INDEX rejection_network ON rejection (network, seq);

-- For people who look with SQL: what came in, and what Sekisho announced itself (source 'sekisho'). billing_id,
-- tenant_id and payment_id are null until the event is settled; what leads to something deleted is null again. An event that left no trace of its settling was let go, and waits for its
-- partition to be dropped.
CREATE VIEW webhook_events AS
SELECT event.seq AS id,
       event.event_id,
       event.type AS event_type,
       event.source,
       CASE WHEN NOT EXISTS (
           SELECT FROM state AS gone WHERE gone.kind = 'billing' AND gone.id = outcome.billing AND gone.status = 'deleted'
       ) THEN outcome.billing END AS billing_id,
       CASE WHEN NOT EXISTS (
           SELECT FROM state AS gone WHERE gone.kind = 'tenant' AND gone.id = outcome.tenant AND gone.status = 'deleted'
       ) THEN outcome.tenant END AS tenant_id,
       outcome.payment AS payment_id,
       CASE WHEN event.is_text THEN convert_from(event.body, 'UTF8') ELSE encode(event.body, 'base64') END AS payload,
       CASE WHEN dead.job IS NOT NULL THEN 'failed'
            WHEN outcome.result = 'discarded' THEN 'skipped'
            ELSE coalesce(outcome.result, 'received') END AS status,
       coalesce(dead.error, outcome.note) AS error_message,
       to_timestamp(coalesce(dead.at, outcome.at) / 1000.0) AS processed_at,
       to_timestamp(event.received_at / 1000.0) AS created_at
FROM event
LEFT JOIN outcome ON outcome.job = event.seq
LEFT JOIN LATERAL (SELECT * FROM dead WHERE dead.event = event.seq ORDER BY job LIMIT 1) AS dead ON true
WHERE event.source <> 'fetched'
  AND (outcome.job IS NOT NULL OR dead.job IS NOT NULL OR EXISTS (SELECT FROM job WHERE job.id = event.seq));

-- "Which events need reprocessing?" One row per dead letter; class says whether trying again can help.
CREATE VIEW failed_webhook_events AS
SELECT event.event_id,
       outcome.payment AS payment_id,
       CASE WHEN event.is_text THEN convert_from(event.body, 'UTF8') ELSE encode(event.body, 'base64') END AS payload,
       dead.error,
       dead.class,
       dead.attempts,
       to_timestamp(event.received_at / 1000.0) AS created_at,
       dead.job AS id,
       dead.reason,
       dead.lane,
       event.source,
       event.type AS event_type,
       to_timestamp(dead.at / 1000.0) AS failed_at
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
           SELECT FROM state AS gone WHERE gone.kind = 'tenant' AND gone.id = state.tenant AND gone.status = 'deleted'
       ) THEN state.tenant END AS tenant_id,
       CASE WHEN NOT EXISTS (
           SELECT FROM state AS gone WHERE gone.kind = 'customer' AND gone.status = 'deleted'
           AND gone.id = replace(replace(coalesce(state.tenant, ''), '%', '%25'), '/', '%2F') || '/' || state.customer
       ) THEN state.customer END AS customer_id,
       livemode,
       attention,
       to_timestamp(created_at / 1000.0) AS created_at,
       to_timestamp(changed_at / 1000.0) AS changed_at
FROM state WHERE kind = 'payment' AND status NOT IN ('merged', 'unheard');

CREATE VIEW billings AS
SELECT id,
       status,
       amount,
       currency,
       CASE WHEN NOT EXISTS (
           SELECT FROM state AS gone WHERE gone.kind = 'tenant' AND gone.id = state.tenant AND gone.status = 'deleted'
       ) THEN state.tenant END AS tenant_id,
       CASE WHEN NOT EXISTS (
           SELECT FROM state AS gone WHERE gone.kind = 'customer' AND gone.status = 'deleted'
           AND gone.id = replace(replace(coalesce(state.tenant, ''), '%', '%25'), '/', '%2F') || '/' || state.customer
       ) THEN state.customer END AS customer_id,
       livemode,
       attention,
       to_timestamp(created_at / 1000.0) AS created_at,
       to_timestamp(changed_at / 1000.0) AS changed_at
FROM state WHERE kind = 'billing' AND status NOT IN ('deleted', 'merged', 'unheard');
