"""What all controllers share: the types between a plan and the program that runs it.

- `snapshot.py`: what a plan reads.
- `actions.py`: what a plan may request.
- `planner.py`: how the loop calls a plan.
- `notice_count.py`: how many notices a controller may write.
- `back_off.py`: how long to wait after failures.
- `release.py` and `bookings.py` read what several controllers use of release.json.
- `pod_kinds.py` recognises pullers' pods, and pods that wait at the gate.

A controller is a folder next to this folder: its settings, its plan, and what the plan is made of.
The plan's file ends in CONTROLLER, which `registry.py` lists.
"""
