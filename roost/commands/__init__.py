"""One module for each command, which is its `command`; imported only when it is called.
`roost/cli.py` has the table.

To add a command, copy `images.py`, and add its line to the table.
"""
