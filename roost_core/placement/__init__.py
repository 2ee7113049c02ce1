"""Where should a pod go? Pure functions: no I/O, no clock, no randomness.

Documents: `settings.py` reads the webhook's rules and the pod classes, with `settings_reader.py`; `pullers.py` and
`managed_images.py` say which images belong on which nodes, `headroom_windows.py` how many placeholders a set should
have when; `headroom_history.py` and `headroom_forecast.py` learn that number.
Objects: `nodes.py` (all nodes at one time), `classes.py` (a pod's class), `repositories.py` (a build's repository),
`kubelet_pulls.py` (what kubelets say of pulls), `labels.py` (every label and name that Roost uses).
Decisions: `rendezvous.py` and `home_load.py` for builds, `warm_sets.py` for users, `lease_state.py` for whether other
parts of Roost are at work. `go_json.py` prints JSON as Go does.
"""
