"""Say what the harness is doing, on stderr, a line at a time.

Owns the harness's only way to talk. stdout stays free for what a command produces.
"""

import sys


def say(line: str) -> None:
    """Write one line to the real stderr: pytest's capture would hide a build of minutes until it's
    over.
    """
    stream = sys.__stderr__ or sys.stderr
    stream.write(f"{line}\n")
    stream.flush()
