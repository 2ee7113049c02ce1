"""Read the pull secrets of a hub's keys. Roost has one list for all of its pods."""

from __future__ import annotations

from collections.abc import Sequence

from generator.importing.result import Draft
from generator.importing.source import HubPath, HubSection
from generator.values.lookups import listing, secret_names


def map_pull_secrets(draft: Draft, hub: HubSection, dotted: str) -> None:
    """Add the pull secrets of the hub's key `dotted` to Roost's."""
    put_pull_secrets(draft, secret_names(hub.items(dotted)), (*hub.path, *dotted.split(".")))


def put_pull_secrets(draft: Draft, names: Sequence[str], source: HubPath) -> None:
    """Add names to Roost's list, each once. source: the hub's key."""
    path = ("imagePullSecrets",)
    known = [name for piece in draft.pieces if piece.path == path for name in listing(piece.value)]
    draft.pieces = [piece for piece in draft.pieces if piece.path != path]
    draft.put("imagePullSecrets", list(dict.fromkeys([*known, *names])), source)
