-- One row a failed scheduling attempt and reason: how many nodes could not take the pod for it.
-- Times are exact: a float of seconds would round microseconds.
CREATE OR REPLACE VIEW v_failure AS
SELECT
    pod.uid AS pod_uid,
    pod.namespace,
    pod.name AS pod_name,
    pod.pod_class,
    pod.hub,
    timestamptz 'epoch' + decision.at_us * interval '1 microsecond' AS first,
    timestamptz 'epoch' + decision.last_us * interval '1 microsecond' AS last,
    decision.tries,
    decision.scheduler,
    decision.nodes_total,
    reason.key AS reason,
    CAST(reason.value AS integer) AS nodes,
    decision.message
FROM decision
LEFT JOIN pod ON pod.uid = decision.pod_uid
LEFT JOIN LATERAL json_each_text(CAST(decision.reasons AS json)) AS reason ON true
WHERE decision.kind = 'fail';
COMMENT ON VIEW v_failure IS 'One row a failed scheduling attempt and reason: how many nodes could not take the pod for it';
COMMENT ON COLUMN v_failure.pod_uid IS 'The pod, as Kubernetes names it for ever';
COMMENT ON COLUMN v_failure.namespace IS 'Its namespace';
COMMENT ON COLUMN v_failure.pod_name IS 'Its name; several pods may have had it, one after the other';
COMMENT ON COLUMN v_failure.pod_class IS 'Its class: user, build, placeholder, one of podClasses, or empty';
COMMENT ON COLUMN v_failure.hub IS 'The hub that it belongs to, `<release>.<namespace>`; or empty';
COMMENT ON COLUMN v_failure.first IS 'When the attempt first failed so';
COMMENT ON COLUMN v_failure.last IS 'When it last failed so';
COMMENT ON COLUMN v_failure.tries IS 'How often, at least';
COMMENT ON COLUMN v_failure.scheduler IS 'The scheduler profile';
COMMENT ON COLUMN v_failure.nodes_total IS 'Nodes in all; NULL: the message didn''t say';
COMMENT ON COLUMN v_failure.reason IS 'In kube-scheduler''s words; NULL: the message has none';
COMMENT ON COLUMN v_failure.nodes IS 'How many nodes were rejected for it';
COMMENT ON COLUMN v_failure.message IS 'The whole message';
