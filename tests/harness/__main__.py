"""The harness by hand: `python -m tests.harness build` and `python -m tests.harness cluster`.

Owns the command line only.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tests.harness.binaries import (
    CONTROL_PLANE,
    MINORS,
    NEWEST_MINOR,
    PROGRAMS,
    BuildError,
    HarnessUnavailableError,
    ensure_binary,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def build(arguments: argparse.Namespace) -> int:
    """Build what isn't in the cache yet; prints each program's path."""
    minors = MINORS if arguments.all_minors else (arguments.minor,)
    for name in arguments.names or PROGRAMS:
        for minor in minors if PROGRAMS[name].for_each_minor else minors[-1:]:
            sys.stdout.write(f"{ensure_binary(name, minor)}\n")
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.harness", description="A real Kubernetes control plane for tests.")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build the pinned programs into the per-user cache")
    building.add_argument("names", nargs="*", metavar="NAME", choices=[[], *PROGRAMS], help=f"of {', '.join(PROGRAMS)}; all by default")
    building.add_argument("--minor", choices=MINORS, default=NEWEST_MINOR, help="Kubernetes minor (%(default)s)")
    building.add_argument("--all-minors", action="store_true", help=f"for each of {', '.join(MINORS)}")
    building.set_defaults(run=build)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """0 done, 1 it didn't work, 2 wrong usage."""
    arguments = make_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except (HarnessUnavailableError, BuildError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
