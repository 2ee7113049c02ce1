"""Launches to replay: read from files of several formats, downloaded, or made up.

`reading.py` opens a trace as attempts (`attempt.py`) in order of time. `files.py` reads lines,
`line_formats.py` finds a line's format: `binderhub_launches.py` (mybinder.org's archive) or
`recorder.py` (`roost records export`). Each makes a `launch_line.py` of it. `counts.py` counts what
was skipped, `order.py` sorts, `pushes.py` models pushes that old traces don't show. `synthetic.py`
makes launches up, with the random numbers of `chance.py`.
"""
