"""What keeps an install of Roost from doing its work, found from outside: what is there, what
answers, what is done.

`checks/` asks, a file a check. `install.py` is what a check is given: the values and the cluster.
`findings.py` is what it says. `conditions.py` and `cause_tree.py` put what follows from a finding
below it. `pod_waits.py` says why pods wait, `try_pod.py` tries one. `placeholder_room.py` counts
how many placeholders there can be, `quotas.py` what a namespace allows, and `foreign_fields.py`
finds what somebody else wrote into objects. `how_installed.py` tells by which tool the install was
made. `quotas_option.py` is `--quotas` of `roost validate` and `roost import`: files stand for a
cluster. `evidence.py` helps checks.
"""
