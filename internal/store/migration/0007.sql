CREATE TABLE ended_links (
    token   TEXT   NOT NULL REFERENCES sandboxes (token) ON DELETE CASCADE,
    mark    TEXT   NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (token, mark)
);
