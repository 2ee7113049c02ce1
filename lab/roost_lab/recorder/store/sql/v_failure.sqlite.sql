-- One row a failed scheduling attempt and reason: how many nodes could not take the pod for it.
-- What the columns mean: v_failure.postgresql.sql.
DROP VIEW IF EXISTS v_failure;
CREATE VIEW v_failure AS
SELECT
    pod.uid AS pod_uid,
    pod.namespace,
    pod.name AS pod_name,
    pod.pod_class,
    pod.hub,
    strftime('%Y-%m-%dT%H:%M:%S', decision.at_us / 1000000, 'unixepoch') || printf('.%06dZ', decision.at_us % 1000000) AS first,
    strftime('%Y-%m-%dT%H:%M:%S', decision.last_us / 1000000, 'unixepoch') || printf('.%06dZ', decision.last_us % 1000000) AS last,
    decision.tries,
    decision.scheduler,
    decision.nodes_total,
    reason.key AS reason,
    reason.value AS nodes,
    decision.message
FROM decision
LEFT JOIN pod ON pod.uid = decision.pod_uid
LEFT JOIN json_each(decision.reasons) AS reason ON true
WHERE decision.kind = 'fail';
