"""Give a real node a control group of its own, and take it away with all that the node left in it.

Owns folders under /sys/fs/cgroup called roost-test-PID-...: PID is of the Python process that made
them, so that the next run sees whose are left over. Works with cgroup v1, v2 and both mounted
together.
"""

import contextlib
import itertools
import os
import signal
from pathlib import Path

from tests.harness.processes import is_alive
from tests.harness.waiting import wait_until

ROOT = Path("/sys/fs/cgroup")
PREFIX = "roost-test-"
GONE_SECONDS = 20.0
_numbers = itertools.count(1)


def make_group() -> str:
    """Make a group in every hierarchy; returns its name, such as roost-test-4711-1."""
    sweep_dead_groups()
    name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
    for hierarchy in hierarchies():
        folder = hierarchy / name
        folder.mkdir(exist_ok=True)
        for needed in ("cpuset.cpus", "cpuset.mems"):  # v1: a group without them takes no process
            if (folder / needed).exists() and not (folder / "cgroup.controllers").exists():
                (folder / needed).write_text((hierarchy / needed).read_text())
        if (folder / "cgroup.controllers").exists():
            _hand_down_controllers(hierarchy)
            _hand_down_controllers(folder)
    return name


def remove_group(name: str) -> None:
    folders = [hierarchy / name for hierarchy in hierarchies()]

    def is_gone() -> bool:
        for folder in folders:
            _kill_and_remove(folder)
        return not any(folder.exists() for folder in folders)

    wait_until(is_gone, GONE_SECONDS, f"control group {name} to be empty")


def sweep_dead_groups() -> None:
    for name in left_groups():
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not is_alive(int(owner)):
            for hierarchy in hierarchies():
                _kill_and_remove(hierarchy / name)


def left_groups(owner: int | None = None) -> set[str]:
    """Names of the groups of tests that stand: all, or those that the process `owner` made.

    Test runs and workers share the hierarchies, so a test that asks what it left asks for its own
    process's.
    """
    prefix = PREFIX if owner is None else f"{PREFIX}{owner}-"
    return {folder.name for hierarchy in hierarchies() for folder in hierarchy.glob(f"{prefix}*")}


def hierarchies() -> list[Path]:
    """The mount points of all hierarchies: one with cgroup v2, one a controller with v1."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2") and Path(folder).is_relative_to(ROOT):
            found.append(Path(folder))
    return found


def _hand_down_controllers(folder: Path) -> None:
    handed_down = set((folder / "cgroup.subtree_control").read_text().split())
    for controller in (folder / "cgroup.controllers").read_text().split():
        if controller not in handed_down:
            # Some can't be had, such as cpu beside real-time processes: the kubelet says so when it
            # needs them.
            with contextlib.suppress(OSError):
                (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def _kill_and_remove(folder: Path) -> None:
    for below, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            for pid in (Path(below) / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):  # still in use by one that is dying
            Path(below).rmdir()


def memory_bytes(pod_uid: str) -> int:
    """Memory that the processes of a pod hold for themselves, without the files that the kernel
    keeps for them.
    """
    for hierarchy in hierarchies():
        # Of this process's nodes: other workers' groups come and go meanwhile.
        for folder in hierarchy.glob(f"{PREFIX}{os.getpid()}-*/**/pod{pod_uid}"):
            stat = folder / "memory.stat"
            if stat.exists():
                lines = dict(line.split() for line in stat.read_text().splitlines())
                return int(lines.get("total_rss") or lines["anon"])
    raise LookupError(f"no control group of pod {pod_uid}")
