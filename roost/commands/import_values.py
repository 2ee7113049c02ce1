"""`roost import`: zero-to-jupyterhub's or BinderHub's values to Roost's."""

from __future__ import annotations

import sys

from generator.importer import import_values
from generator.values import read_file


def run(file: str, release: str) -> int:
    """Values to stdout; to stderr what could not be mapped and what to switch off there."""
    result = import_values(read_file(file), file, release)
    sys.stdout.write(result.to_yaml())
    sys.stderr.write(result.report())
    return 0
