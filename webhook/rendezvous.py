"""Find the best nodes for a key by rendezvous hashing.

Each key has its own order of all nodes. When a node goes, the order of the others stays. So only
builds on that node lose their cache. BinderHub uses the same order, so a hub that switches to Roost
keeps its caches. Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
IEEE/ACM ToN 6(1), 1998.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from heapq import nlargest
from typing import Final

# As in BinderHub.
_DIGEST_BYTES: Final = 8
# So many candidates are kept for each node that is wanted, before they are sorted.
_CANDIDATES_A_NODE: Final = 8


def encode_name(node: str) -> bytes:
    """The bytes of a node's name that are hashed."""
    return node.encode(errors="surrogatepass")


def _name_of(candidate: bytes) -> str:
    """The name of a node after its digest."""
    return candidate[_DIGEST_BYTES:].decode(errors="surrogatepass")


def best_nodes(key: str, nodes: Iterable[bytes], count: int) -> list[str]:
    """The first `count` nodes of the key's order, the best home first; the same in each process.

    nodes: names as `encode_name` returns them.

    BinderHub sorts pairs of a number and a name. The number is the digest of `<key>-<node>`. Here,
    a digest followed by a name is compared as bytes. That gives the same order, because UTF-8 keeps
    the order of names.
    """
    if count == 0:
        return []
    # The part that is the same for all nodes is hashed only once.
    key_hash = blake2b(encode_name(f"{key}-"), digest_size=_DIGEST_BYTES)
    # Most of thousands of nodes are worse than the worst of the best so far, and are forgotten at
    # once. So hashing takes most of the time.
    candidates: list[bytes] = []
    least_digest = b""
    for name in nodes:
        node_hash = key_hash.copy()
        node_hash.update(name)
        digest = node_hash.digest()
        if digest < least_digest:
            continue
        candidates.append(digest + name)
        if len(candidates) > _CANDIDATES_A_NODE * count:
            candidates = nlargest(count, candidates)
            least_digest = candidates[-1][:_DIGEST_BYTES]
    return list(map(_name_of, nlargest(count, candidates)))
