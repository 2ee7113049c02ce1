"""One module for each command, which is its `command`; imported only when it is called.
`roost/cli.py` has the table.

To add a command, copy `images.py`, and add its line to the table.

These modules are no commands, and commands are made of them: `options.py`, `fault_formats.py`,
`pod_file.py`, `hub_trial.py` (how imported values fare), `headroom_history.py`, `prometheus.py`.
"""
