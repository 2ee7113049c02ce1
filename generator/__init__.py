"""From values to manifests.

`pipeline.py` is the one way for every command: release, schema, lint, render. `faults.py` is how a fault is reported,
`locations.py` finds the chart and the templates.
Rooms: `values/` (read and merge), `checks/` (schema and lint), `render/` (Jinja2 to manifests, folders, diffs),
`compile/` (Jinja2 to the chart's Go templates), `importing/` (other charts' values to Roost's).
"""
