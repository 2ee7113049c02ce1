"""From zero-to-jupyterhub's and BinderHub's values to Roost's.

`importer.py` runs the import; `source.py` finds the hub in the files and records which keys were
read, `result.py` collects the values and notes, `printing.py` prints them, `summary.py` says what
Roost will do with them. By subject: `hub.py` (scheduler, priorities, core pods), `users.py` (sizes,
nodes, placeholders), `images.py` (images, profiles, pullers), `profile_pools.py`,
`lost_overrides.py` (profiles), `builds.py` (BinderHub), `reach.py` (the hub's Python),
`resources.py`, `quantities.py`. `trial_pods.py` makes users' pods, `proposals.py` says what would
help, `many_hubs.py` unites hubs, `gitops.py` unwraps Argo CD and Flux, `unread.py` names what has
no place.
"""
