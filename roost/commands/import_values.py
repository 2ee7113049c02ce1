"""`roost import`: zero-to-jupyterhub's or BinderHub's values to Roost's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from generator.importer import import_layers
from generator.values import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(files: Sequence[str], release: str) -> int:
    """Values to stdout; to stderr what could not be mapped and what to switch off there."""
    result = import_layers([(file, read_file(file)) for file in files], release)
    sys.stdout.write(result.to_yaml())
    sys.stderr.write(result.report())
    return 0
