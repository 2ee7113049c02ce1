"""Kubernetes objects: one view of each kind, and the one meaning of selectors, taints and requests.

`pod.py` is what programs keep of a Pod, and `pod_reader.py` reads it from a watch. `node.py` has
both for a Node. `pod_body.py` is a pod's JSON as a review reads it. `selectors.py` evaluates
selectors, node terms, taints and tolerations; `leaving_taints.py` has autoscalers' taints, fixed,
for `Node.leaving`, gate, mover, headroom and popular images; `requests.py` sums up requests;
`quotas.py` reads ResourceQuotas and LimitRanges; `device_classes.py`, `quantities.py`,
`timestamps.py`, `image_references.py` and `metadata.py` read parts; `fields.py` reads JSON, and
says what is malformed; `foreign_yaml.py` reads what strangers wrote. `remembering.py` remembers
what equal parts of objects come to. Nothing here knows Roost's own decisions.
"""
