-- What the books gained and lost at providers in an hour, by cause. mode: 1 live, 0 test, -1 where the provider does not say.
CREATE TABLE hourly_money (
    hour     bigint NOT NULL,
    amount   bigint NOT NULL,
    lines    bigint NOT NULL,
    mode     integer NOT NULL,
    currency text COLLATE "C" NOT NULL,
    cause    text COLLATE "C" NOT NULL,
    PRIMARY KEY (hour, mode, currency, cause)
);

-- Differs from SQLite: lines are added in the order of time, so ranges of pages are enough to find an hour.
CREATE INDEX posting_at ON posting USING brin (at) WITH (autosummarize = on);
