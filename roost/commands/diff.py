"""`roost diff`: what changes in the cluster between two values files, or values and manifests."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from generator.diff import compare, is_manifests, read_manifests, show
from generator.faults import GeneratorError, UsageError
from generator.merge import Settings
from roost.plain_render import RenderOptions, manifests

if TYPE_CHECKING:
    from generator.diff import Objects
    from generator.release import Release

SAME = 0
DIFFERENT = 1


def run(before: str, after: str, release: Release, colour: str) -> int:
    """Print the differences; 0 none, 1 some. Faults of either side are errors of usage here: 2, as `diff` has it."""
    try:
        changes = compare(_objects(before, release), _objects(after, release))
    except UsageError:
        raise
    except GeneratorError as error:
        raise UsageError(str(error)) from None
    is_coloured = colour == "always" or (colour == "auto" and sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    sys.stdout.write(show(changes, coloured=is_coloured))
    return DIFFERENT if changes else SAME


def _objects(path: str, release: Release) -> Objects:
    if is_manifests(path):
        return read_manifests(path)
    made = manifests(RenderOptions((path,), Settings(), release))
    return {manifest.identity: manifest.body for manifest in made}
