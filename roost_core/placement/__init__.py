"""Where should a pod go? Pure functions: no I/O, no clock, no randomness.

Documents: `settings.py` reads the webhook's rules and the pod classes, with `settings_reader.py`; `pullers.py` and
`managed_images.py` say which images belong on which nodes, `headroom_windows.py` how many placeholders a set should
have when; `headroom_history.py` and `headroom_forecast.py` learn that number.
Objects: `pods.py`, `nodes.py`, `selectors.py`, `quantities.py`, `timestamps.py`, `images.py` (references),
`classes.py` (a pod's class), `repositories.py` (a build's repository), `labels.py` (every label and name that Roost
uses), `leaving_taints.py`.
Decisions: `rendezvous.py` and `home_load.py` for builds, `warm_sets.py` for
users, `lease_state.py` for whether other parts of Roost are at work. `go_json.py` prints JSON as Go does;
`record_copier.py` copies records fast.
"""
