"""From values files and `--set` to one set of values that knows where each key was written.

`files.py` reads and merges everything; `loader.py` parses YAML as Helm does, `merge.py` merges and
parses `--set`, `sources.py` records the file and line of each key, `lookups.py` reads single
values, `profile_overrides.py` what a hub's profiles set; `release_name.py` holds the release's
name, namespace and version.
"""
