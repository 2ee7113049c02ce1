"""One module per command of `roost/cli.py`, imported only when the command is called."""
