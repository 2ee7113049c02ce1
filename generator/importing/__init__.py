"""From zero-to-jupyterhub's and BinderHub's values to Roost's.

The run:

- `importer.py` runs the import.
- `source.py` finds the hub in the files, and records which keys were read.
- `hub_folders.py` finds the hubs of a folder, `many_hubs.py` unites them.
- `wrappers.py` finds the hub's values in what installs its chart; `argo_flux.py` unwraps Argo CD
  and Flux.
- `result.py` collects the values, the notes and what to switch off in the hub, and words the
  report. `yaml_printer.py` writes the values.
- `not_carried_over.py` names what has no place in Roost's values. `proposals.py` says which parts
  of Roost would help.
- `summary.py` says what Roost will do with the values, `money.py` what node-hours come to.
- `trial_pods.py` makes users' pods, to try the imported values on them.

By subject:

- `hub.py`: `map_hub` calls the subjects below; scheduler, core pods, priorities
- `server_starts.py`: what slows or refuses starts: the hub's limits of users, CPU
- `seating.py`: whether the hub has a token for seating
- `culling.py`: when the hub ends idle servers
- `users.py`: what the values get of users: their sizes, nodes (with selectors and node terms:
  `map_user_terms`), placeholders
- `images.py`: images, which images profiles bring to which nodes, pullers
- `user_sizes.py`: how large a user is, and which nodes it may use
- `profile_pools.py`: placeholder sets for the nodes that profiles choose; `lost_overrides.py`: what
  of profiles isn't carried over
- `builds.py`: BinderHub
- `class_match.py`: whether the hub's users are within reach of class `user`
- `hub_traits.py`: what the hub sets of its spawner beside the chart's keys
- `hub_python.py` finds the pieces of the hub's Python. `python_settings.py` says what one statement
  sets, `hub_code.py` which trait that is; `python_names.py`, `profile_filters.py`,
  `spawn_hook.py`: names, filters and the hook in it. It is read and never run.
- `traits.py`, `chart_traits.py`: KubeSpawner's traits, and what the chart's keys set of them
- `chart_resources.py`, `pull_secrets.py`, `object_names.py`: what the chart's pods and objects have
- `quantities.py`: KubeSpawner's sizes as Kubernetes quantities
"""
