"""From values to manifests.

`pipeline.py` is the one way for every command: read, find faults, render. `faults.py` is how a
fault is reported, `package_data.py` finds the folders of the chart and the templates, `hub_keys.py`
tells a hub's values from Roost's.

Rooms: `values/` (read and merge), `schema/`, `checks/` (lint across keys), `render/` (Jinja2 to
manifests, folders, diffs), `importing/` (other charts' values to Roost's). `tools/compile/` makes
the chart's Go templates of the same.
"""
