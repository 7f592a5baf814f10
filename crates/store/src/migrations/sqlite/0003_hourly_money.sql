-- What the books gained and lost at providers in an hour, by cause. mode: 1 live, 0 test, -1 where the provider does not say.
CREATE TABLE hourly_money (
    hour     INTEGER NOT NULL,
    mode     INTEGER NOT NULL,
    currency TEXT NOT NULL,
    cause    TEXT NOT NULL,
    amount   INTEGER NOT NULL,
    lines    INTEGER NOT NULL,
    PRIMARY KEY (hour, mode, currency, cause)
) STRICT, WITHOUT ROWID;

CREATE INDEX posting_at ON posting (at);
