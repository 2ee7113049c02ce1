"""What rules know of the cluster: `facts.py`, made of `warm.py` (pods with a warm set, and images
on nodes) and `placed_pod.py` (one pod). `warm_candidates.py` says which nodes may be in the warm
set of pods of one kind, and how many it has. `holders.py` intersects sets of nodes that hold
images.

Facts are replaced, never changed. Each part has an `updated` that shares what didn't change, so
that a replacement takes microseconds even with thousands of nodes. `webhook/watching/` keeps them.
"""
