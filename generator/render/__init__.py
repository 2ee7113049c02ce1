"""From valid values to manifests.

`manifests.py` renders every template; `environment.py` is the restricted Jinja2, `functions.py`
what templates call, `order.py` the order of the objects. `managed_images.py` says which images
belong on which nodes, `kube_scheduler.py` which kube-schedulers there are, `deployed_scheduler.py`
which of them an install runs. `go_json.py` prints JSON as Helm does. `write_manifests.py` writes a
folder, `summary.py` says in a dozen lines what an install creates. `read_manifests.py` reads
manifests, `diff.py` compares two sets of them.
"""
