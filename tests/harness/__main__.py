"""The harness by hand: `python -m tests.harness build` and `python -m tests.harness cluster`.

Owns the command line only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from tests.harness.binaries import (
    MINORS,
    NEWEST_MINOR,
    PACKAGED,
    PROGRAMS,
    REAL_NODE,
    BuildError,
    HarnessUnavailableError,
    ensure_binary,
    missing_binaries,
)
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import start_scheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

KNOWN = (*PACKAGED, *PROGRAMS)


def build(arguments: argparse.Namespace) -> int:
    """Build or unpack what isn't in the cache yet; prints each program's path.

    Without names, programs that can't be had here are reported and left out, except in CI: Debian's and real nodes'.
    """
    minors = MINORS if arguments.all_minors else (arguments.minor,)
    # Debian's first: they take seconds.
    for name in arguments.names or KNOWN:
        may_lack = name in (*PACKAGED, *REAL_NODE) and not arguments.names and not os.environ.get("CI")
        if may_lack and sys.platform != "linux":
            continue
        for minor in minors if name in PROGRAMS and PROGRAMS[name].for_each_minor else minors[-1:]:
            try:
                sys.stdout.write(f"{ensure_binary(name, minor)}\n")
            except HarnessUnavailableError as error:
                if not may_lack:
                    raise
                sys.stderr.write(f"tests that need {name} will be skipped: {error}\n")
    return 0


def cluster(arguments: argparse.Namespace) -> int:
    """Bring a cluster up, say how to use it, and keep it until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a plain `kill` cleans up too
    for name in missing_binaries(minor=arguments.minor):
        ensure_binary(name, arguments.minor)
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(arguments.minor))
        nodes = stack.enter_context(FakeNodes(plane.api))
        names = [f"node-{number}" for number in range(1, arguments.nodes + 1)]
        nodes.create_many(names, cpu=arguments.cpu, memory=arguments.memory)
        stack.enter_context(PodKeeper(plane.api))
        if arguments.scheduler:
            start_scheduler(plane).wait_serving()
        sys.stdout.write(f"{plane.kubeconfig}\n")
        sys.stdout.flush()
        sys.stderr.write(
            f"""
Kubernetes {plane.api.get("/version")["gitVersion"]} at {plane.server}, {len(names)} fake nodes. In another shell:

    export KUBECONFIG={plane.kubeconfig}
    alias kubectl={ensure_binary("kubectl")}
    kubectl get nodes

Pods run as soon as they are bound{"" if arguments.scheduler else ", and nothing binds them: start a scheduler"}.
Logs are in {plane.folder}. Ctrl-C stops it all.
"""
        )
        programs = (plane.etcd, plane.apiserver, plane.controller_manager)
        while all(program is None or program.is_running for program in programs):
            time.sleep(0.5)
        plane.keep_logs = True
        ended = next(program for program in programs if program is not None and not program.is_running)
        sys.stderr.write(f"{ended.epitaph('by itself')}\n")
    return 1


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.harness", description="A real control plane for tests.")
    commands = parser.add_subparsers(dest="command", required=True)

    building = commands.add_parser("build", help="build the pinned programs into the per-user cache")
    building.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(KNOWN)}; all by default")
    building.add_argument("--minor", choices=MINORS, default=NEWEST_MINOR, help="of Kubernetes (%(default)s)")
    building.add_argument("--all-minors", action="store_true", help=f"for each of {', '.join(MINORS)}")
    building.set_defaults(run=build)

    playing = commands.add_parser("cluster", help="run a cluster until Ctrl-C; its kubeconfig's path goes to stdout")
    playing.add_argument("--nodes", type=int, default=3, metavar="N", help="fake nodes (%(default)s)")
    playing.add_argument("--cpu", default="4", help="of each node (%(default)s)")
    playing.add_argument("--memory", default="16Gi", help="of each node (%(default)s)")
    playing.add_argument("--minor", choices=MINORS, default=NEWEST_MINOR, help="of Kubernetes (%(default)s)")
    playing.add_argument(
        "--no-scheduler", dest="scheduler", action="store_false", help="leave scheduling to one of your own"
    )
    playing.set_defaults(run=cluster)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """0 done, 1 it didn't work, 2 wrong usage."""
    parser = make_parser()
    arguments = parser.parse_args(argv)
    unknown = [name for name in getattr(arguments, "names", ()) if name not in KNOWN]
    if unknown:
        parser.error(f"found program {unknown[0]!r}, expected one of {', '.join(KNOWN)}")
    try:
        return int(arguments.run(arguments))
    except (HarnessUnavailableError, BuildError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130  # as shells report SIGINT


if __name__ == "__main__":
    sys.exit(main())
