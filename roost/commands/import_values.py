"""`roost import`: zero-to-jupyterhub's or BinderHub's values to Roost's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from generator.faults import Fault, ValuesError
from generator.importing.importer import import_layers
from generator.importing.proposals import print_proposals, propose
from generator.values.files import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(files: Sequence[str], release: str, hub: str | None = None, *, spawn_page: bool = False) -> int:
    """Print the values to stdout, with proposals as comments below, and the report of the import to stderr.

    spawn_page: print the lines for the hub's own values instead, and no report.
    """
    layers = [(file, read_file(file)) for file in files]
    result = import_layers(layers, release, hub)
    if spawn_page:
        if not result.spawn_page:
            fix = "Name the hub's own file, too."
            raise ValuesError([Fault(result.filename, 0, "", "no hub", "values of zero-to-jupyterhub", fix)])
        sys.stdout.write(result.spawn_page)
        return 0
    sys.stdout.write(result.to_yaml() + print_proposals(propose(result, layers, release, hub)))
    sys.stderr.write(result.report())
    return 0
