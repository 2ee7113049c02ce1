"""Play launches in a world of discrete events, one component of the cluster in each module.

All nodes are of one pool (`node_template.py`). What all parts share is `cluster.py`, with the
launches, pods and nodes of `entities.py`. `world.py` drives the parts, says how long a replay goes
on after the last launch, and writes the result (`results.py`, added up in `totals.py`, with
durations in `histogram.py`). `journal.py`: what is told while it is played. The hub, or all hubs:
`hub.py`; what each has of its own: `releases.py`. Its pods, as the webhook changes them: `pods.py`,
`webhook_facts.py`. kube-scheduler: `scheduling.py`. Images: `node_images.py` alone decides, for one
node, when a pull begins and ends (at once when it is requested), and what is on the node's disk;
what nodes share, `world.py` gives each as it joins; `kubelets.py` reports it, and runs the pullers.
Builds: `builds.py`. What a node looks like: `node_template.py`; when it is requested and joins:
`scaling.py`, which runs `cluster_autoscaler.py` or `karpenter.py` (their interface:
`node_scaler.py`; what fits where: `group_template.py`, `free_room.py`). Placeholders:
`placeholder_sets.py`. Controllers: `controllers.py`. `bounds.py`: what no policy can beat.

What is drawn at random belongs to what it is drawn for, so it is the same under every policy
(`Cluster.chance`): of nodes in `world.py`, of people in `hub.py`, of images in `node_images.py`, of
builds in `builds.py`.
"""
