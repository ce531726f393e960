ALTER TABLE usages ADD COLUMN boxes BIGINT NOT NULL DEFAULT 0;

CREATE INDEX usages_by_time ON usages (begins);

CREATE INDEX usages_of_hours ON usages (begins) WHERE boxes = 0;
