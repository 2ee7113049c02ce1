"""Find the best nodes for a key by rendezvous hashing.

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
# Nodes among which the best are looked for at a time, for each that is wanted.
_KEPT: Final = 8


def encode_name(node: str) -> bytes:
    """The bytes of a node's name that are hashed."""
    return node.encode(errors="surrogatepass")


def _decode(scored: bytes) -> str:
    return scored[_DIGEST_BYTES:].decode(errors="surrogatepass")


def best_nodes(key: str, nodes: Iterable[bytes], count: int) -> list[str]:
    """The first `count` nodes of the key's order, the best home first; the same in every process.

    nodes: names as `encode_name` gives them. BinderHub compares (digest, name), the digest of
    `<key>-<node>` as a number. UTF-8 keeps the order of names, so a digest and a name, one after
    the other as bytes, compare just as these pairs do.
    """
    if count == 0:
        return []
    # What is the same for all nodes is hashed once.
    start = blake2b(encode_name(f"{key}-"), digest_size=_DIGEST_BYTES)
    # Of thousands of nodes few come near the best so far, and only those are looked at again. With
    # one pass and nothing kept of the others, little is left but hashing.
    most_kept = _KEPT * count
    best: list[bytes] = []
    least = b""
    for name in nodes:
        state = start.copy()
        state.update(name)
        digest = state.digest()
        if digest >= least:
            best.append(digest + name)
            if len(best) > most_kept:
                best = nlargest(count, best)
                least = best[-1][:_DIGEST_BYTES]
    return list(map(_decode, nlargest(count, best)))
