"""A model of kube-scheduler as pure functions: which nodes fit a pod, what each scores, and which one is taken.

`cycle.py` decides one pod: `filters.py` (with `node_filters.py`, `topology_spread.py`, `pod_affinity.py`), then
`scores.py`, or `preemption.py`. `state.py` is the cluster, with `node_rows.py`, `pod_queries.py` and
`surroundings.py`; `matching.py` and `verdicts.py` are shared.
`objects.py` has the records of nodes and pods, which `node_reader.py`, `pod_reader.py` and `requests.py` make from
JSON. `profile.py` reads a KubeSchedulerConfiguration; `plugins.py` is the table of plugins and feature gates by
minor.
"""
