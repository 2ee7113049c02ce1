"""`roost seating`: start the servers of a class's listed people before it begins, by JupyterHub's
REST API. It has no rights in Kubernetes.

`service.py` looks at the hub and asks it, `plan.py` decides which servers start and stop, by the
pace of `roost_core/release/seating_pace.py`. `bookings.py` finds which bookings there are,
`listed.py` whom they seat. `hub.py` is the hub's API, `user_models.py` and `people.py` read its
answers, `memory.py` keeps what was seen.
"""
