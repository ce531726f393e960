CREATE TABLE ports (
    token  TEXT   NOT NULL REFERENCES sandboxes (token) ON DELETE CASCADE,
    port   BIGINT NOT NULL,
    public BIGINT NOT NULL,
    epoch  BIGINT NOT NULL,
    PRIMARY KEY (token, port)
);
