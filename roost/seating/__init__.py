"""`roost seating`: start the servers of a class's listed people before it begins, by JupyterHub's
REST API. It has no rights in Kubernetes.

`service.py` looks at the hub and asks it. `observing.py` remembers what a look tells, `memory.py`
and `pace.py` what came of starts. `plan.py` decides from that which servers start and stop;
`starts.py` and `stops.py` ask for it. `status.py` says what goes on. The numbers of the pace are in
`roost_core/release/seating_pace.py`. `settings.py` reads release.json with the bookings of the
values, `bookings.py` those of `roost book`, `listed.py` finds whom they seat. `hub.py` is the hub's
API, `user_models.py` and `people.py` read its answers. `memory_file.py` keeps the memory over a
restart.
"""
