"""Become another program that the kernel kills when its parent dies: `die_with_parent.py PARENT_PID PROGRAM ARGS...`.

Owns the tie between a test run and the programs it starts. Runs on its own, in isolated mode: imports nothing of ours.
A tiny program rather than `preexec_fn`, which may deadlock when the parent has threads (ours has: watches).
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1    # linux/prctl.h

if __name__ == "__main__":
    parent_pid, program = int(sys.argv[1]), sys.argv[2]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the line above: then no signal will ever come.
        if os.getppid() != parent_pid:
            sys.exit(1)
    os.execv(program, sys.argv[2:])  # noqa: S606
