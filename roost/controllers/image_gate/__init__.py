"""The image gate: labels say which images a node holds, and keep users off nodes that are still
pulling theirs.

`plan.py` puts one plan together from each node's share, which `node.py` judges: `facts.py` says
which images the node holds, `closed_or_open.py` what the label of one that it lacks should be,
`node_labels.py` which labels and taint to change (and what holds before the node is Ready, while it
leaves and under a startup taint), `node_reports.py` what to report (with `pull_fault_texts.py`, why
a pull fails); `node_share.py` is what these know about a node, and what they ask for. `waiting.py`
opens nodes to users who wait for nothing but the gate. `settings.py` reads release.json.
"""
