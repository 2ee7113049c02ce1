-- One row a step of a pod's start or end, the first time that it was reached.
-- Times are exact: a float of seconds would round microseconds.
CREATE OR REPLACE VIEW v_phase AS
SELECT
    phase.pod_uid,
    pod.namespace,
    pod.name AS pod_name,
    pod.pod_class,
    pod.hub,
    phase.phase,
    phase.detail,
    timestamptz 'epoch' + phase.at_us * interval '1 microsecond' AS at,
    CAST(phase.resolution_us AS double precision) / 1000000 AS resolution_seconds,
    phase.source
FROM phase
LEFT JOIN pod ON pod.uid = phase.pod_uid;
COMMENT ON VIEW v_phase IS 'One row a step of a pod''s start or end, the first time that it was reached';
COMMENT ON COLUMN v_phase.pod_uid IS 'The pod, as Kubernetes names it for ever';
COMMENT ON COLUMN v_phase.namespace IS 'Its namespace';
COMMENT ON COLUMN v_phase.pod_name IS 'Its name; several pods may have had it, one after the other';
COMMENT ON COLUMN v_phase.pod_class IS 'Its class: user, build, placeholder, one of podClasses, or empty';
COMMENT ON COLUMN v_phase.hub IS 'The hub that it belongs to, `<release>.<namespace>`; or empty';
COMMENT ON COLUMN v_phase.phase IS 'seated, asked, created, gated, ungated, unschedulable, nominated, scheduled, accepted, pulling, pulled, initialized, init-started, init-ended, started, ready, answered, start-failed, gave-up, opened, unused, terminating, gone';
COMMENT ON COLUMN v_phase.detail IS 'The image, container or gate; empty: the whole pod';
COMMENT ON COLUMN v_phase.at IS 'When it was reached';
COMMENT ON COLUMN v_phase.resolution_seconds IS 'How exact that is: of source watch it may have been so much earlier, of others so much later';
COMMENT ON COLUMN v_phase.source IS 'What told it: pod (its object), event, watch (the recorder saw it), hub (its log), sniffer or audit (imported logs)';
