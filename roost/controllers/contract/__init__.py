"""What all controllers share: the types between a plan and the program that runs it.

`snapshot.py` is what a plan reads, `actions.py` what it may request, `planner.py` how the loop calls it.
`placeholder_sets.py` reads the sets that mover and headroom share; `puller_pods.py`, `waiting_reasons.py` and
`gated_pods.py` recognise pullers' pods, failed pulls, and pods that wait at the gate.
"""
