"""`roost controllers`: keep true what placement relies on. Each turn: snapshot -> plan -> actions,
by one leader.

Each controller has a room (`image_gate/`, `placeholder_mover/`, `headroom/`, `popular_images/`,
`start_notices/`); `registry.py` lists them. `contract/` is what they share: snapshot, actions,
planner. `runtime/` watches the cluster and carries actions out. `main.py` starts the program with
`controllers_options.py` (command line) and `controllers_settings.py` (release.json).
`certificates.py` keeps the webhook's certificates; `cleanup.py` is `roost cleanup`.
"""
