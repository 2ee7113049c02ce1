-- One row an image of a pod: whether its node had it, and how long the pull took.
-- What the columns mean: v_pull.postgresql.sql.
DROP VIEW IF EXISTS v_pull;
CREATE VIEW v_pull AS
SELECT
    pod.uid AS pod_uid,
    pod.namespace,
    pod.name AS pod_name,
    pod.pod_class,
    pod.hub,
    pull.image,
    pull.node_name AS node,
    strftime('%Y-%m-%dT%H:%M:%S', pull.at_us / 1000000, 'unixepoch') || printf('.%06dZ', pull.at_us % 1000000) AS finished,
    pull.warm AS is_warm,
    CAST(pull.pull_us AS REAL) / 1000000 AS pull_seconds,
    CAST(pull.pull_and_wait_us - pull.pull_us AS REAL) / 1000000 AS queue_seconds,
    pull.image_bytes AS bytes
FROM pull
LEFT JOIN pod ON pod.uid = pull.pod_uid;
