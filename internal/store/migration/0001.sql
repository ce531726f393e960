CREATE TABLE tenants (
    id      TEXT   NOT NULL PRIMARY KEY,
    name    TEXT   NOT NULL,
    quota   TEXT   NOT NULL,
    created BIGINT NOT NULL,
    rate    BIGINT NOT NULL
);

CREATE TABLE keys (
    id      TEXT   NOT NULL PRIMARY KEY,
    tenant  TEXT   NOT NULL REFERENCES tenants (id),
    name    TEXT   NOT NULL,
    hash    TEXT   NOT NULL,
    scopes  TEXT   NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    revoked BIGINT NOT NULL,
    used    BIGINT NOT NULL
);

CREATE INDEX keys_by_tenant ON keys (tenant);

CREATE TABLE sandboxes (
    id        TEXT   NOT NULL PRIMARY KEY,
    tenant    TEXT   NOT NULL REFERENCES tenants (id),
    token     TEXT   NOT NULL UNIQUE,
    place     TEXT   NOT NULL,
    maker     TEXT   NOT NULL,
    tier      TEXT   NOT NULL,
    spec      TEXT   NOT NULL,
    labels    TEXT   NOT NULL,
    state     TEXT   NOT NULL,
    created   BIGINT NOT NULL,
    cpu       BIGINT NOT NULL,
    memory    BIGINT NOT NULL,
    pids      BIGINT NOT NULL,
    disk      BIGINT NOT NULL
);

CREATE INDEX sandboxes_by_tenant ON sandboxes (tenant);

CREATE INDEX sandboxes_by_place ON sandboxes (place);

CREATE TABLE leases (
    place   TEXT   NOT NULL,
    id      TEXT   NOT NULL,
    version BIGINT NOT NULL,
    data    TEXT   NOT NULL,
    PRIMARY KEY (place, id)
);

CREATE TABLE snapshots (
    id      TEXT   NOT NULL,
    place   TEXT   NOT NULL,
    tenant  TEXT   NOT NULL REFERENCES tenants (id),
    sandbox TEXT   NOT NULL,
    name    TEXT   NOT NULL,
    created BIGINT NOT NULL,
    PRIMARY KEY (place, id)
);

CREATE INDEX snapshots_by_tenant ON snapshots (tenant);

CREATE TABLE usages (
    token       TEXT   NOT NULL,
    begins      BIGINT NOT NULL,
    ends        BIGINT NOT NULL,
    sandbox     TEXT   NOT NULL,
    tenant      TEXT   NOT NULL,
    tier        TEXT   NOT NULL,
    labels      TEXT   NOT NULL,
    wall        BIGINT NOT NULL,
    paused      BIGINT NOT NULL,
    cpu         BIGINT NOT NULL,
    memory      BIGINT NOT NULL,
    cpu_asked   BIGINT NOT NULL,
    memory_asked BIGINT NOT NULL,
    disk_asked  BIGINT NOT NULL,
    net_in      BIGINT NOT NULL,
    net_out     BIGINT NOT NULL,
    mark        TEXT   NOT NULL,
    PRIMARY KEY (token, begins)
);

CREATE INDEX usages_by_tenant ON usages (tenant, begins);
