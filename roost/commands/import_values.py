"""`roost import`: zero-to-jupyterhub's or BinderHub's values to Roost's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from generator.importing.importer import import_layers
from generator.values.files import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(files: Sequence[str], release: str, hub: str | None = None) -> int:
    """Print the values to stdout, and the report of the import to stderr."""
    result = import_layers([(file, read_file(file)) for file in files], release, hub)
    sys.stdout.write(result.to_yaml())
    sys.stderr.write(result.report())
    return 0
