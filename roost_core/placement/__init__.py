"""Where should a pod go? Pure functions: no I/O, no clock, no randomness.

Decisions: `warm_sets.py` for users (`webhook/rules/warm.py` chooses by it), `lease_state.py` for
whether other parts of Roost are at work, `beliefs.py` for how long evidence counts.
`headroom_windows.py` says how many placeholders a set should have when; `headroom_history.py` and
`headroom_forecast.py` learn that number. `headroom_account.py` keeps what learning saved and cost,
against the imagined nodes of `pool_without.py`; `headroom_worth.py` weighs waiting against
node-hours under the monthly ceiling, and `headroom_cut.py` tells which classes the ceiling cuts.
`priorities.py` says which pods give way. `hold_ups.py`: what holds bound pods up. Objects:
`nodes.py` (all nodes at one time), `kubelet_pulls.py` (what kubelets say of pulls), `labels.py`
(every label and name that Roost uses).
"""
