"""release.json, the one document by which programs know their release: the chart writes it, and
this package reads it.

`reader.py` loads it and collects its faults; `release_settings.py` has its parts, of which each
program reads what it needs. `pod_classes.py` (`podClasses`) and `class_of_pod.py` (which of them a
pod belongs to), `image_gate.py` (with pullers), `placeholder_sets.py`, `windows.py` and
`bookings.py` (when placeholders are wanted) are the larger parts; `seating_pace.py` says how fast
servers are started before a class; `repositories.py` finds a pod's repository, and `policy_mode.py`
says what `admission.mode: policy` can't do. Ranges stand in the values' schema alone, and defaults
in chart/values.yaml: a missing key is a fault, except where values may be null.
"""
