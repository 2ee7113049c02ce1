"""What keeps an install of Roost from doing its work, found from outside: what is there, what
answers, what is done.

`checks/` asks, a file a check, and `contract.py` says what a check is given. `conditions.py` and
`cause_tree.py` put what follows from a finding below it. `pod_waits.py` says why pods wait,
`try_pod.py` tries one. `placeholder_room.py` counts how many placeholders there can be, `quotas.py`
what a namespace allows, and `foreign_fields.py` finds what somebody else wrote into objects.
`installer.py` tells how the install was made. `cluster_files.py` stands for a cluster, for `roost
validate`. `evidence.py` helps checks.
"""
