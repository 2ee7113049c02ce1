"""One module for each command, which it has as `command`; imported only when that is called. `roost/cli.py` has the table.

To add a command, copy `images.py`, and add its line to the table.
"""
