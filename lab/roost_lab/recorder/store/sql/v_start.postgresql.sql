-- One row a pod: when it reached each step of its start, and how long the steps took.
-- Times are exact: a float of seconds would round microseconds.
CREATE OR REPLACE VIEW v_start AS
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
    CAST(pod.cpu_millicores AS double precision) / 1000 AS cpu,
    pod.memory_bytes,
    timestamptz 'epoch' + pod.created_us * interval '1 microsecond' AS created,
    timestamptz 'epoch' + start.bound_us * interval '1 microsecond' AS bound,
    timestamptz 'epoch' + start.started_us * interval '1 microsecond' AS started,
    timestamptz 'epoch' + start.ready_us * interval '1 microsecond' AS ready,
    timestamptz 'epoch' + pod.deleted_us * interval '1 microsecond' AS gone,
    pod.end_reason,
    CAST(start.bound_us - coalesce(start.told_us, pod.created_us) AS double precision) / 1000000 AS wait_seconds,
    CAST(start.started_us - start.bound_us AS double precision) / 1000000 AS start_seconds,
    CAST(start.ready_us - pod.created_us AS double precision) / 1000000 AS ready_seconds,
    (SELECT bool_or(NOT pull.warm) FROM pull WHERE pull.pod_uid = pod.uid) AS is_cold,
    (SELECT CAST(max(pull.pull_and_wait_us) AS double precision) / 1000000 FROM pull WHERE pull.pod_uid = pod.uid) AS pull_seconds,
    CAST(start.bound_us - start.node_created_us AS double precision) / 1000000 AS node_age_seconds,
    pod.source,
    timestamptz 'epoch' + start.asked_us * interval '1 microsecond' AS asked,
    timestamptz 'epoch' + start.answered_us * interval '1 microsecond' AS answered,
    CASE WHEN start.answered_us IS NOT NULL THEN 'answered' WHEN start.failed_us IS NOT NULL THEN 'failed' END AS outcome,
    CAST(start.answered_us - start.asked_us AS double precision) / 1000000 AS answer_seconds,
    timestamptz 'epoch' + start.seated_us * interval '1 microsecond' AS seated,
    timestamptz 'epoch' + start.opened_us * interval '1 microsecond' AS opened,
    timestamptz 'epoch' + start.unused_us * interval '1 microsecond' AS unused
FROM start
JOIN pod ON pod.uid = start.pod_uid
LEFT JOIN start_place AS place ON place.id = start.place_id;
COMMENT ON VIEW v_start IS 'One row a pod: when it reached each step of its start, and how long the steps took';
COMMENT ON COLUMN v_start.pod_uid IS 'The pod, as Kubernetes names it for ever';
COMMENT ON COLUMN v_start.namespace IS 'Its namespace';
COMMENT ON COLUMN v_start.pod_name IS 'Its name; several pods may have had it, one after the other';
COMMENT ON COLUMN v_start.pod_class IS 'Its class: user, build, placeholder, one of podClasses, or empty';
COMMENT ON COLUMN v_start.hub IS 'The hub that it belongs to, `<release>.<namespace>`; or empty';
COMMENT ON COLUMN v_start.image IS 'The image of its first main container, in full';
COMMENT ON COLUMN v_start.repository IS 'For BinderHub: the repository; or empty';
COMMENT ON COLUMN v_start.ref IS 'For BinderHub: the resolved reference, such as a commit; or empty';
COMMENT ON COLUMN v_start.scheduler IS 'The scheduler profile that it names';
COMMENT ON COLUMN v_start.node IS 'Where it was bound; NULL: nowhere yet';
COMMENT ON COLUMN v_start.cpu IS 'CPUs that it requests';
COMMENT ON COLUMN v_start.memory_bytes IS 'Memory that it requests';
COMMENT ON COLUMN v_start.created IS 'When it was created';
COMMENT ON COLUMN v_start.bound IS 'When a scheduler bound it to its node';
COMMENT ON COLUMN v_start.started IS 'When its last container started';
COMMENT ON COLUMN v_start.ready IS 'When it was ready first';
COMMENT ON COLUMN v_start.gone IS 'When it was seen to be gone; NULL while it exists';
COMMENT ON COLUMN v_start.end_reason IS 'Why it went: deleted, preempted, evicted, finished, failed, node-gone, unseen';
COMMENT ON COLUMN v_start.wait_seconds IS 'From its creation until it was bound; exact, or up to a second too long';
COMMENT ON COLUMN v_start.start_seconds IS 'From then until its containers ran: up to a second longer, as these are known to a second';
COMMENT ON COLUMN v_start.ready_seconds IS 'The whole start of the pod: from creation to ready, both in whole seconds';
COMMENT ON COLUMN v_start.is_cold IS 'Whether an image was pulled for it; NULL: no Event told';
COMMENT ON COLUMN v_start.pull_seconds IS 'Its longest pull, with the wait behind other pulls; NULL: none';
COMMENT ON COLUMN v_start.node_age_seconds IS 'The node''s age when it was bound: exact, or up to a second too long';
COMMENT ON COLUMN v_start.source IS 'What the row was made from: watch, pod, sniffer, or event (Events alone: times are estimates)';
COMMENT ON COLUMN v_start.asked IS 'When its user asked the hub for it, by the hub''s log';
COMMENT ON COLUMN v_start.answered IS 'When its server had answered the hub, likewise';
COMMENT ON COLUMN v_start.outcome IS 'answered; failed: its hub gave it up (start-failed in v_phase), or it went before (gave-up); NULL: not known';
COMMENT ON COLUMN v_start.answer_seconds IS 'What the user waited: from the click until the server answered';
COMMENT ON COLUMN v_start.seated IS 'When Roost''s seating asked the hub for it, before a class; NULL: seating didn''t, or no log told';
COMMENT ON COLUMN v_start.opened IS 'When its user first came to a server that seating had asked for, by the hub''s log';
COMMENT ON COLUMN v_start.unused IS 'When seating stopped it, because nobody had used it';
