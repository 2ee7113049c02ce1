"""What a replay is given beside its trace: assumptions about the world, and policies.

`assumptions.py` has them with their sources, `checks.py` reads and bounds them, and `worlds.py`
names sets of them. `policy.py` renders values files; `shipped_policies.py` finds those of
`policies/`.
"""
