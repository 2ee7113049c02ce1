"""The harness by hand: `python -m tests.harness build`.

Owns the command line only.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from tests.harness import binaries

KNOWN = (*binaries.PACKAGED, *binaries.PROGRAMS)


def build(arguments: argparse.Namespace) -> int:
    """Build or unpack what isn't in the cache yet; prints each program's path.

    Without names, programs that can't be had here are reported and left out, except in CI: Debian's
    and real nodes'. Without names and minor, the oldest minor's control plane is built, too.
    """
    minors = (
        binaries.MINORS if arguments.all_minors else (arguments.minor or binaries.NEWEST_MINOR,)
    )
    # Debian's first: they take seconds.
    for name in arguments.names or KNOWN:
        may_lack = (
            name in (*binaries.PACKAGED, *binaries.REAL_NODE)
            and not arguments.names
            and not os.environ.get("CI")
        )
        if may_lack and sys.platform != "linux":
            continue
        for minor in (
            minors
            if name in binaries.PROGRAMS and binaries.PROGRAMS[name].for_each_minor
            else minors[-1:]
        ):
            try:
                sys.stdout.write(f"{binaries.ensure_binary(name, minor)}\n")
            except binaries.HarnessUnavailableError as error:
                if not may_lack:
                    raise
                sys.stderr.write(f"tests that need {name} will be skipped: {error}\n")
    if not arguments.names and not arguments.minor:
        for name in binaries.CONTROL_PLANE:
            sys.stdout.write(f"{binaries.ensure_binary(name, binaries.OLDEST_MINOR)}\n")
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness", description="A real control plane for tests."
    )
    commands = parser.add_subparsers(dest="command", required=True)

    building = commands.add_parser(
        "build", help="build the pinned programs into the per-user cache"
    )
    building.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(KNOWN)}; all by default"
    )
    building.add_argument(
        "--minor", choices=binaries.MINORS, help=f"of Kubernetes ({binaries.NEWEST_MINOR})"
    )
    building.add_argument(
        "--all-minors", action="store_true", help=f"for each of {', '.join(binaries.MINORS)}"
    )
    building.set_defaults(run=build)

    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """0 done, 1 it didn't work, 2 wrong usage."""
    parser = make_parser()
    arguments = parser.parse_args(argv)
    if unknown := [name for name in getattr(arguments, "names", ()) if name not in KNOWN]:
        parser.error(f"found program {unknown[0]!r}, expected one of {', '.join(KNOWN)}")
    try:
        return int(arguments.run(arguments))
    except (binaries.HarnessUnavailableError, binaries.BuildError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
