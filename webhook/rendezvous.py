"""Rank nodes for a key by rendezvous hashing.

Owns the order of nodes for one key; knows nothing of pods, affinity terms or load. Guarantee:
losing a node leaves the order of the others alone, so only that node's builds lose their cache. The
order is BinderHub's own, so that a hub which moves here keeps its warm caches. Source: Thaler and
Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM ToN 6(1), 1998.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from heapq import nlargest
from typing import Final

# BinderHub's.
_DIGEST_BYTES: Final = 8


def encode_name(node: str) -> bytes:
    """The bytes of a node's name that are hashed."""
    return node.encode(errors="surrogatepass")


def _decode(scored: bytes) -> str:
    return scored[_DIGEST_BYTES:].decode(errors="surrogatepass")


def _score(key: str, names: Iterable[bytes]) -> list[bytes]:
    """Return each name prefixed by its digest: sorted as bytes, the digest decides, and the name
    breaks ties.

    The bytes hashed are `<key>-<node>`. BinderHub compares (digest as a big-endian number, name),
    and UTF-8 keeps the order of names, so bytes compare just as these pairs do.
    """
    start = blake2b(encode_name(f"{key}-"), digest_size=_DIGEST_BYTES).copy
    scored = []
    for name in names:
        # The common prefix is hashed once.
        state = start()
        state.update(name)
        scored.append(state.digest() + name)
    return scored


def best_nodes(key: str, nodes: Iterable[bytes], count: int) -> list[str]:
    """The first `count` of `rank_nodes`, of names as `encode_name` gives them."""
    return [_decode(scored) for scored in nlargest(count, _score(key, nodes))]


def rank_nodes(key: str, nodes: Iterable[str]) -> list[str]:
    """Order `nodes` from the best home for `key` to the worst; the same in every process."""
    return [
        _decode(scored) for scored in sorted(_score(key, map(encode_name, nodes)), reverse=True)
    ]
