"""Popular images: bring what many users run to nodes that lack it.

`user_counts.py` counts the users of images, `node_disks.py` says which nodes have room for more,
`plan.py` which images are pulled where, `pull_pods.py` writes and reads the pods that pull.
`settings.py` reads release.json. Numbers that the values don't have are in `settings.py` (what is
popular, how much is pulled at once) and in `plan.py` (times).
"""
