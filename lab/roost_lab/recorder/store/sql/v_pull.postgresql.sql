-- One row an image of a pod: whether its node had it, and how long the pull took.
-- Times are exact: a float of seconds would round microseconds.
CREATE OR REPLACE VIEW v_pull AS
SELECT
    pod.uid AS pod_uid,
    pod.namespace,
    pod.name AS pod_name,
    pod.pod_class,
    pod.hub,
    pull.image,
    pull.node_name AS node,
    timestamptz 'epoch' + pull.at_us * interval '1 microsecond' AS finished,
    pull.warm AS is_warm,
    CAST(pull.pull_us AS double precision) / 1000000 AS pull_seconds,
    CAST(pull.pull_and_wait_us - pull.pull_us AS double precision) / 1000000 AS queue_seconds,
    pull.image_bytes AS bytes
FROM pull
LEFT JOIN pod ON pod.uid = pull.pod_uid;
COMMENT ON VIEW v_pull IS 'One row an image of a pod: whether its node had it, and how long the pull took';
COMMENT ON COLUMN v_pull.pod_uid IS 'The pod, as Kubernetes names it for ever';
COMMENT ON COLUMN v_pull.namespace IS 'Its namespace';
COMMENT ON COLUMN v_pull.pod_name IS 'Its name; several pods may have had it, one after the other';
COMMENT ON COLUMN v_pull.pod_class IS 'Its class: user, build, placeholder, one of podClasses, or empty';
COMMENT ON COLUMN v_pull.hub IS 'The hub that it belongs to, `<release>.<namespace>`; or empty';
COMMENT ON COLUMN v_pull.image IS 'The image, as the pod names it';
COMMENT ON COLUMN v_pull.node IS 'The node';
COMMENT ON COLUMN v_pull.finished IS 'When the image was ready to use';
COMMENT ON COLUMN v_pull.is_warm IS 'The node already had it';
COMMENT ON COLUMN v_pull.pull_seconds IS 'The pull itself; NULL: warm, or not told';
COMMENT ON COLUMN v_pull.queue_seconds IS 'The wait behind the kubelet''s other pulls before it';
COMMENT ON COLUMN v_pull.bytes IS 'The image''s size in the registry, layers that the node had included';
