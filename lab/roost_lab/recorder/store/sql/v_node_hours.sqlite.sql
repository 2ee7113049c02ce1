-- One row a node and hour (UTC): which part of the hour the node existed; sum hours for node-hours.
-- What the columns mean: v_node_hours.postgresql.sql.
DROP VIEW IF EXISTS v_node_hours;
CREATE VIEW v_node_hours AS
-- A node is counted from its creation, or the record's first day if that was later,
-- until it went, or the record's last news. An hour is 3600000000 microseconds.
WITH RECURSIVE seen(first_us, last_us) AS (
    SELECT coalesce((SELECT min(started_us) FROM run), (SELECT min(created_us) FROM start), 0),
        coalesce((SELECT max(at_us) FROM checkpoint), (SELECT max(created_us) FROM start), 0)
), life(uid, from_us, to_us) AS (
    SELECT node.uid, max(node.created_us, seen.first_us), coalesce(node.gone_us, seen.last_us)
    FROM node CROSS JOIN seen WHERE node.created_us > 0
), span(uid, from_us, to_us, hour_us) AS (
    SELECT uid, from_us, to_us, from_us - from_us % 3600000000 FROM life WHERE to_us > from_us
    UNION ALL
    SELECT uid, from_us, to_us, hour_us + 3600000000 FROM span WHERE hour_us + 3600000000 < to_us
)
SELECT
    node.name AS node,
    node.uid AS node_uid,
    strftime('%Y-%m-%dT%H:%M:%S', span.hour_us / 1000000, 'unixepoch') || printf('.%06dZ', span.hour_us % 1000000) AS hour,
    CAST(min(span.to_us, span.hour_us + 3600000000) - max(span.from_us, span.hour_us) AS REAL) / 3600000000 AS hours,
    json_extract(node.labels, '$."node.kubernetes.io/instance-type"') AS instance_type,
    json_extract(node.labels, '$."topology.kubernetes.io/zone"') AS zone
FROM span
JOIN node ON node.uid = span.uid;
