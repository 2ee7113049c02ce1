"""One module a command, ending in `COMMAND`; imported only when the command is called. `roost/cli.py` has the table.

To add a command, copy `images.py`, and add its line to the table.
"""
