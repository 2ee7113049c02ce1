"""BinderHub's ring in its plainest form: what `webhook.rendezvous` is held to."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def rank_nodes(key: str, nodes: Iterable[str]) -> list[str]:
    """Order nodes from the best home for `key` to the worst, as BinderHub's documentation of sticky
    builds says.
    """

    def score(node: str) -> tuple[int, str]:
        digest = blake2b(f"{key}-{node}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big"), node

    return sorted(nodes, key=score, reverse=True)
