-- One row a node and hour (UTC): which part of the hour the node existed; sum hours for node-hours.
-- Times are exact: a float of seconds would round microseconds.
CREATE OR REPLACE VIEW v_node_hours AS
-- A node is counted from its creation, or the record's first day if that was later,
-- until it went, or the record's last news. An hour is 3600000000 microseconds.
WITH RECURSIVE seen(first_us, last_us) AS (
    SELECT coalesce((SELECT min(started_us) FROM run), (SELECT min(created_us) FROM start), 0),
        coalesce((SELECT max(at_us) FROM checkpoint), (SELECT max(created_us) FROM start), 0)
), life(uid, from_us, to_us) AS (
    SELECT node.uid, greatest(node.created_us, seen.first_us), coalesce(node.gone_us, seen.last_us)
    FROM node CROSS JOIN seen WHERE node.created_us > 0
), span(uid, from_us, to_us, hour_us) AS (
    SELECT uid, from_us, to_us, from_us - from_us % 3600000000 FROM life WHERE to_us > from_us
    UNION ALL
    SELECT uid, from_us, to_us, hour_us + 3600000000 FROM span WHERE hour_us + 3600000000 < to_us
)
SELECT
    node.name AS node,
    node.uid AS node_uid,
    timestamptz 'epoch' + span.hour_us * interval '1 microsecond' AS hour,
    CAST(least(span.to_us, span.hour_us + 3600000000) - greatest(span.from_us, span.hour_us) AS double precision) / 3600000000 AS hours,
    CAST(node.labels AS json) ->> 'node.kubernetes.io/instance-type' AS instance_type,
    CAST(node.labels AS json) ->> 'topology.kubernetes.io/zone' AS zone
FROM span
JOIN node ON node.uid = span.uid;
COMMENT ON VIEW v_node_hours IS 'One row a node and hour (UTC): which part of the hour the node existed; sum hours for node-hours';
COMMENT ON COLUMN v_node_hours.node IS 'The node''s name';
COMMENT ON COLUMN v_node_hours.node_uid IS 'The node; a later one may have the same name';
COMMENT ON COLUMN v_node_hours.hour IS 'The beginning of the hour';
COMMENT ON COLUMN v_node_hours.hours IS 'The part of the hour for which it existed, 0 to 1';
COMMENT ON COLUMN v_node_hours.instance_type IS 'The machine, by its label; NULL: none';
COMMENT ON COLUMN v_node_hours.zone IS 'The zone, by its label; NULL: none';
