CREATE TABLE dialects (
    place   TEXT   NOT NULL,
    dialect TEXT   NOT NULL,
    kind    TEXT   NOT NULL,
    tenant  TEXT   NOT NULL REFERENCES tenants (id),
    id      TEXT   NOT NULL,
    data    TEXT   NOT NULL,
    PRIMARY KEY (place, dialect, kind, tenant, id)
);
