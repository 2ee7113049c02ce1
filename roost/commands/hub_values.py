"""`--hub-values` of several commands: the hub's own values, which Roost only reads."""

from __future__ import annotations

from collections.abc import Sequence

from generator.importing.importer import import_layers
from generator.importing.source import HubSection
from generator.values.files import read_file


def read_hub(files: Sequence[str]) -> HubSection | None:
    """The hub that values files of zero-to-jupyterhub or BinderHub configure; later files win.

    None without files. Raises ValuesError for files that hold no hub, UsageError for a file that
    can't be read.
    """
    if not files:
        return None
    return import_layers([(file, read_file(file)) for file in files]).hub
