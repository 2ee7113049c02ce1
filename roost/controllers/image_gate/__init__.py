"""The image gate: labels say which images a node holds, and keep users off nodes that are still
pulling theirs.

A plan (`plan.py`) goes through these steps for each node:

- `puller_pods.py`: what do the puller's pods on it report?
- `facts.py`: which images does it hold?
- `node_labels.py`: what should its labels and its startup taint be, and which change makes them so?

Then `waiting_users.py` opens nodes to users who wait for nothing but the gate.

`temporary_taints.py` tells which taints go by themselves, and `pull_warnings.py` why a node doesn't
get its images. `settings.py` has the keys of the values, which `roost_core/release/image_gate.py`
reads.
"""
