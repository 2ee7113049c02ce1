"""The facts, kept up to date by watches.

`keeper.py` replaces the facts when something changed. `watched_cluster.py` makes them of what is
watched, one file a kind: `nodes.py`, `device_classes.py`, `priority_classes.py`, `quotas.py`,
`namespaces.py`, `builders.py`, `pods.py`, `leases.py`. Each file says when its kind is watched,
where it is listed, how an object is read and what the facts get from it. What pods tell is more:
`pod_reader.py` reads one, `failed_pulls.py` remembers pulls that failed, `pull_evidence.py` says
which of them count. For the metrics, `unplaced_and_waiting.py` counts the pods that came through
without the webhook, and those that wait. `reported_images.py` is what nodes tell of their images.
"""
