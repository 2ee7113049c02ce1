"""Rank nodes for a key by rendezvous hashing.

Owns the order of nodes for one key; knows nothing of pods, affinity terms or load. Guarantee:
losing a node leaves the order of the others alone, so only that node's builds lose their cache. The
order is BinderHub's own, so that a hub which moves here keeps its warm caches. Source: Thaler and
Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM ToN 6(1), 1998.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
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


def _digests(key: str, names: Iterable[bytes]) -> list[bytes]:
    """The digest of `<key>-<node>` for each name, which BinderHub compares as a number."""
    start = blake2b(encode_name(f"{key}-"), digest_size=_DIGEST_BYTES).copy
    digests = []
    for name in names:
        # The common prefix is hashed once.
        state = start()
        state.update(name)
        digests.append(state.digest())
    return digests


def best_nodes(key: str, nodes: Collection[bytes], count: int) -> list[str]:
    """The first `count` of `rank_nodes`, of names as `encode_name` gives them; none for 0."""
    if count == 0:
        return []
    digests = _digests(key, nodes)
    # Names are looked at only where digests are high enough: of thousands, few are.
    highest = nlargest(count, digests)
    scored = [
        digest + name for digest, name in zip(digests, nodes, strict=True) if digest >= highest[-1]
    ]
    return list(map(_decode, nlargest(count, scored)))


def rank_nodes(key: str, nodes: Iterable[str]) -> list[str]:
    """Order `nodes` from the best home for `key` to the worst; the same in every process.

    BinderHub compares (digest, name). UTF-8 keeps the order of names, so a digest and a name, one
    after the other as bytes, compare just as these pairs do.
    """
    names = list(map(encode_name, nodes))
    scored = [digest + name for digest, name in zip(_digests(key, names), names, strict=True)]
    return list(map(_decode, sorted(scored, reverse=True)))
