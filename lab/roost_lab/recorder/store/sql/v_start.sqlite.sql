-- One row a pod: when it reached each step of its start, and how long the steps took.
-- What the columns mean: v_start.postgresql.sql.
DROP VIEW IF EXISTS v_start;
CREATE VIEW v_start AS
SELECT
    pod.uid AS pod_uid,
    pod.namespace,
    pod.name AS pod_name,
    pod.pod_class,
    pod.hub,
    pod.image,
    pod.repo AS repository,
    pod.ref,
    pod.scheduler,
    place.node_name AS node,
    CAST(pod.cpu_millicores AS REAL) / 1000 AS cpu,
    pod.memory_bytes,
    strftime('%Y-%m-%dT%H:%M:%S', pod.created_us / 1000000, 'unixepoch') || printf('.%06dZ', pod.created_us % 1000000) AS created,
    strftime('%Y-%m-%dT%H:%M:%S', start.bound_us / 1000000, 'unixepoch') || printf('.%06dZ', start.bound_us % 1000000) AS bound,
    strftime('%Y-%m-%dT%H:%M:%S', start.started_us / 1000000, 'unixepoch') || printf('.%06dZ', start.started_us % 1000000) AS started,
    strftime('%Y-%m-%dT%H:%M:%S', start.ready_us / 1000000, 'unixepoch') || printf('.%06dZ', start.ready_us % 1000000) AS ready,
    strftime('%Y-%m-%dT%H:%M:%S', pod.deleted_us / 1000000, 'unixepoch') || printf('.%06dZ', pod.deleted_us % 1000000) AS gone,
    pod.end_reason,
    CAST(start.bound_us - coalesce(start.told_us, pod.created_us) AS REAL) / 1000000 AS wait_seconds,
    CAST(start.started_us - start.bound_us AS REAL) / 1000000 AS start_seconds,
    CAST(start.ready_us - pod.created_us AS REAL) / 1000000 AS ready_seconds,
    (SELECT max(NOT pull.warm) FROM pull WHERE pull.pod_uid = pod.uid) AS is_cold,
    (SELECT CAST(max(pull.pull_and_wait_us) AS REAL) / 1000000 FROM pull WHERE pull.pod_uid = pod.uid) AS pull_seconds,
    CAST(start.bound_us - start.node_created_us AS REAL) / 1000000 AS node_age_seconds,
    pod.source,
    strftime('%Y-%m-%dT%H:%M:%S', start.asked_us / 1000000, 'unixepoch') || printf('.%06dZ', start.asked_us % 1000000) AS asked,
    strftime('%Y-%m-%dT%H:%M:%S', start.answered_us / 1000000, 'unixepoch') || printf('.%06dZ', start.answered_us % 1000000) AS answered,
    CASE WHEN start.answered_us IS NOT NULL THEN 'answered' WHEN start.failed_us IS NOT NULL THEN 'failed' END AS outcome,
    CAST(start.answered_us - start.asked_us AS REAL) / 1000000 AS answer_seconds,
    strftime('%Y-%m-%dT%H:%M:%S', start.seated_us / 1000000, 'unixepoch') || printf('.%06dZ', start.seated_us % 1000000) AS seated,
    strftime('%Y-%m-%dT%H:%M:%S', start.opened_us / 1000000, 'unixepoch') || printf('.%06dZ', start.opened_us % 1000000) AS opened,
    strftime('%Y-%m-%dT%H:%M:%S', start.unused_us / 1000000, 'unixepoch') || printf('.%06dZ', start.unused_us % 1000000) AS unused
FROM start
JOIN pod ON pod.uid = start.pod_uid
LEFT JOIN start_place AS place ON place.id = start.place_id;
