"""What all controllers share: the types between a plan and the program that runs it.

`snapshot.py` is what a plan reads, `actions.py` what it may request, `planner.py` how the loop
calls it. `back_off.py`: how long to wait after failures. `release.py` reads what they share of
release.json, with `bookings.py`; `pod_kinds.py` recognises pullers' pods, and pods that wait at the
gate. A controller is a folder: its settings, its plan, which ends in CONTROLLER, and what the plan
is made of; `registry.py` lists them.
"""
