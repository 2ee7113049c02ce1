-- One row a step of a pod's start or end, the first time that it was reached.
-- What the columns mean: v_phase.postgresql.sql.
DROP VIEW IF EXISTS v_phase;
CREATE VIEW v_phase AS
SELECT
    phase.pod_uid,
    pod.namespace,
    pod.name AS pod_name,
    pod.pod_class,
    pod.hub,
    phase.phase,
    phase.detail,
    strftime('%Y-%m-%dT%H:%M:%S', phase.at_us / 1000000, 'unixepoch') || printf('.%06dZ', phase.at_us % 1000000) AS at,
    CAST(phase.resolution_us AS REAL) / 1000000 AS resolution_seconds,
    phase.source
FROM phase
LEFT JOIN pod ON pod.uid = phase.pod_uid;
