"""Where should a pod go? Pure functions: no I/O, no clock, no randomness.

Decisions: `rendezvous.py` and `home_load.py` for builds, `warm_sets.py` for users
(`webhook/rules/warm.py` chooses by it), `lease_state.py` for whether other parts of Roost are at
work, `beliefs.py` for how long evidence counts. `managed_images.py` says which images belong on
which nodes, `headroom_windows.py` how many placeholders a set should have when;
`headroom_history.py` and `headroom_forecast.py` learn that number. Objects: `nodes.py` (all nodes
at one time), `kubelet_pulls.py` (what kubelets say of pulls), `labels.py` (every label and name
that Roost uses). `go_json.py` prints JSON as Go does.
"""
