CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE tasks (place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, document BLOB NOT NULL);

CREATE TABLE rounds (
    key INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT NOT NULL REFERENCES tasks (id), number INTEGER NOT NULL, state TEXT NOT NULL,
    document BLOB, digest TEXT, sums TEXT, published BLOB, published_digest TEXT,
    is_retired BOOLEAN NOT NULL, UNIQUE (task, number));

CREATE TABLE trail (
    task TEXT NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (task, number));

CREATE TABLE sums (
    round BIGINT PRIMARY KEY, place BIGINT NOT NULL, settled BIGINT NOT NULL, people BIGINT NOT NULL,
    cells BLOB NOT NULL);

CREATE TABLE id_blocks (
    round BIGINT NOT NULL, place BIGINT NOT NULL, ids BLOB NOT NULL, PRIMARY KEY (round, place)) WITHOUT ROWID;

CREATE TABLE id_runs (round BIGINT NOT NULL, run BIGINT NOT NULL, PRIMARY KEY (round, run)) WITHOUT ROWID;

CREATE TABLE id_pages (
    round BIGINT NOT NULL, run BIGINT NOT NULL, first BLOB NOT NULL, ids BLOB NOT NULL,
    PRIMARY KEY (round, run, first));

CREATE TABLE reports (
    round BIGINT NOT NULL, id BLOB NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (round, id)) WITHOUT ROWID;

CREATE TABLE tokens (round BIGINT NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (round, hash)) WITHOUT ROWID;

CREATE TABLE keys (name TEXT PRIMARY KEY, hash BLOB NOT NULL);

INSERT INTO alembic_version (version_num) VALUES ('0001') RETURNING version_num;

