"""From valid values to manifests.

`manifests.py` renders every template; `environment.py` is the restricted Jinja2, `functions.py`
what templates call, `order.py` the order of the objects. `output.py` writes a folder, `diff.py`
compares two sets of manifests.
"""
