"""The snapshot, kept by watches; each object is reduced to what plans need as it arrives.

`watched_cluster.py` makes the snapshot of what is watched, one file a kind: `nodes.py`, `pods.py`,
`stateful_sets.py`, `pull_events.py`, `hold_ups.py`, `namespaces.py`, `device_classes.py`,
`histories.py`, `bookings.py`, `quotas.py`. Each file says when its kind is watched, where it is
listed, how an object is read and what the snapshot gets from it. `minor_changes.py` says which
changes may wait.
"""
