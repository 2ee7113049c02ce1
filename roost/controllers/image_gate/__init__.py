"""The image gate: labels say which images a node holds, and keep users off nodes that are still
pulling theirs.

Data goes one way in each plan (`plan.py`): what the puller's pods of a node report
(`puller_pods.py`), the facts (`facts.py`: which images it holds), its targets, and the change of
its labels and startup taint (both in `node_labels.py`). Then `waiting_users.py` opens nodes to
users who wait for nothing but the gate. `temporary_taints.py` tells which taints go by themselves.
`settings.py` reads release.json.
"""
