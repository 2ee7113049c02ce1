"""Find the pieces of the hub's own Python among its values."""

from __future__ import annotations

from collections.abc import Mapping

from generator.checks.contract import mapping, text
from generator.importing.source import HubSection, Path, child


def python_of(hub: HubSection) -> list[tuple[Path, str]]:
    """The hub's own Python with its keys, in the order in which it runs.

    Pieces are in `hub.extraFiles`, where they are mounted as configuration, and in
    `hub.extraConfig`.
    """
    files = mapping(child(hub.data, "hub", "extraFiles"))
    pieces: list[tuple[Path, object]] = [
        (("hub", "extraFiles", name, "stringData"), child(file, "stringData"))
        for name, file in sorted(files.items())
        if "jupyterhub_config.d/" in text(child(file, "mountPath"))
    ]
    config = hub.get("hub.extraConfig", "any")
    if isinstance(config, Mapping):
        pieces += [(("hub", "extraConfig", name), code) for name, code in sorted(config.items())]
    else:
        pieces.append((("hub", "extraConfig"), config))
    return [(at, code) for at, code in pieces if isinstance(code, str) and code]
