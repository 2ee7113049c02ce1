"""A model of kube-scheduler as pure functions: which nodes fit a pod, what each scores, and which
one is taken.

`cycle.py` decides one pod: `filters.py` (with `node_filters.py`, `topology_spread.py`,
`pod_affinity.py`), then `scores.py`, or `preemption.py`. `state.py` is the cluster, with
`node_rows.py`, `pod_queries.py` and `surroundings.py`; `rejections.py` is shared. A pod's fields
are read in `roost_core/objects/pod_reader.py`; which pods a term means: `condition_of` in
`state.py`. `profile.py` reads a KubeSchedulerConfiguration; `plugins.py` is the table of plugins
and feature gates by minor.
"""
