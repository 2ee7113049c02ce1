-- Statements of start_rows.py, in its order. Sorted by key, so that two writers cannot deadlock.
INSERT INTO start_kind (pod_class, scheduler, image)
SELECT DISTINCT pod.pod_class, pod.scheduler, substr(pod.image, 1, {most}) FROM pod
WHERE pod.uid {among} AND NOT EXISTS (
    SELECT 1 FROM start_kind AS kind WHERE kind.pod_class = pod.pod_class AND kind.scheduler = pod.scheduler
    AND kind.image = substr(pod.image, 1, {most}))
ORDER BY 1, 2, 3
ON CONFLICT (pod_class, scheduler, image) DO NOTHING;
INSERT INTO start_place (pod_class, node_name, node_uid)
SELECT DISTINCT pod.pod_class, bind.node_name, bind.node_uid
FROM pod JOIN decision AS bind ON bind.id = pod.uid || '/{bind}'
WHERE pod.uid {among} AND NOT EXISTS (
    SELECT 1 FROM start_place AS place WHERE place.pod_class = pod.pod_class
    AND place.node_name = bind.node_name AND place.node_uid = bind.node_uid)
ORDER BY 1, 2, 3
ON CONFLICT (pod_class, node_name, node_uid) DO NOTHING;
INSERT INTO start
    (created_us, pod_uid, kind_id, place_id, node_created_us, bound_us, started_us, ready_us, deleted_us,
    told_us, asked_us, answered_us, failed_us, seated_us, opened_us, unused_us)
SELECT pod.created_us, pod.uid, kind.id, place.id, nullif(node.created_us, 0), bind.at_us,
    reached.running_us,
    -- Events don't tell when a pod was ready: nearly all users' pods are as soon as their containers run.
    coalesce(reached.ready_us,
        CASE WHEN pod.source = '{event}' AND bind.id IS NOT NULL THEN reached.running_us END),
    pod.deleted_us,
    -- An exact time is counted from an exact one.
    CASE WHEN bind.resolution_us < {second} THEN reached.told_us END,
    reached.asked_us, reached.answered_us, reached.failed_us,
    reached.seated_us, reached.opened_us, reached.unused_us
FROM pod
JOIN start_kind AS kind ON kind.pod_class = pod.pod_class AND kind.scheduler = pod.scheduler
    AND kind.image = substr(pod.image, 1, {most})
LEFT JOIN decision AS bind ON bind.id = pod.uid || '/{bind}'
LEFT JOIN start_place AS place ON place.pod_class = pod.pod_class
    AND place.node_name = bind.node_name AND place.node_uid = bind.node_uid
LEFT JOIN node ON node.uid = bind.node_uid
LEFT JOIN (
    SELECT pod_uid, {times},
        max(CASE WHEN phase = '{created}' AND resolution_us < {second} THEN at_us END) AS told_us
    FROM phase WHERE pod_uid {among} GROUP BY pod_uid) AS reached ON reached.pod_uid = pod.uid
WHERE pod.uid {among}
ORDER BY 1, 2
ON CONFLICT (created_us, pod_uid) DO UPDATE SET {updates};
DELETE FROM start WHERE (created_us, pod_uid) IN (
    SELECT created_us, uid FROM pod WHERE uid {among} AND source = '{event}');
