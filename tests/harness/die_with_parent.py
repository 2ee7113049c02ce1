"""Become a program that the kernel kills when its parent dies: `die_with_parent.py PARENT_PID PIPE
PROGRAM ARGS...`.

Owns the tie between a test run and the programs it starts. Runs on its own, in isolated mode:
imports nothing of ours. A tiny program rather than `preexec_fn`, which may deadlock when the parent
has threads (ours has: watches). PIPE: a file descriptor that closes when the program has taken
over, or gets the reason why it couldn't.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h

if __name__ == "__main__":
    parent_pid, pipe, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    os.set_inheritable(pipe, False)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the line above: then no signal will ever come.
        if os.getppid() != parent_pid:
            sys.exit(1)
    try:
        os.execv(program, sys.argv[3:])  # noqa: S606
    except OSError as error:
        os.write(pipe, str(error).encode())
        sys.exit(127)
