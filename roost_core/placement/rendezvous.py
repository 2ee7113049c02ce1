"""Rank nodes for a key by rendezvous hashing.

Owns the order of nodes for one key; knows nothing of pods, affinity terms or load.
Guarantee: losing a node leaves the order of the others alone, so only that node's builds lose their cache.
The order is BinderHub's own, so that a hub which moves here keeps its warm caches.
Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM ToN 6(1), 1998.
"""

from __future__ import annotations

import heapq
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# BinderHub's.
_DIGEST_BYTES: Final = 8
# Best nodes cached for a key. More than any list of weights, to allow for nodes that left or don't fit.
_KEPT: Final = 64
# Cached keys: some 6 kB each, with names of 40 characters.
_MAX_KEYS: Final = 1024
# The longest cached key; repositories' URLs have some 60 characters. Pods choose keys, and may choose megabytes.
_MAX_KEY: Final = 1024
# If few nodes have left, skipping them is cheaper than ranking again.
_MIN_DEPARTED: Final = 256


def _encode(node: str) -> bytes:
    return node.encode(errors="surrogatepass")


def _decode(scored: bytes) -> str:
    return scored[_DIGEST_BYTES:].decode(errors="surrogatepass")


def _score(key: str, names: Iterable[bytes]) -> list[bytes]:
    """Return each name prefixed by its digest: sorted as bytes, the digest decides, and the name breaks ties.

    The bytes hashed are `<key>-<node>`. BinderHub compares (digest as a big-endian number, name), and UTF-8 keeps the
    order of names, so bytes compare just as these pairs do.
    """
    start = blake2b(_encode(f"{key}-"), digest_size=_DIGEST_BYTES).copy
    scored = []
    for name in names:
        # The common prefix is hashed once.
        state = start()
        state.update(name)
        scored.append(state.digest() + name)
    return scored


def rank_nodes(key: str, nodes: Iterable[str]) -> list[str]:
    """Order `nodes` from the best home for `key` to the worst; the same in every process."""
    return [_decode(scored) for scored in sorted(_score(key, map(_encode, nodes)), reverse=True)]


class _Ranked(NamedTuple):
    """The nodes that rankings are made from; replaced as a whole."""

    # A new number invalidates all cached rankings.
    generation: int
    # Names in UTF-8, of departed nodes too, in order of arrival.
    nodes: tuple[bytes, ...]
    known: frozenset[str]
    # The present nodes; the caller's own object.
    members: frozenset[str]


class Ring:
    """Ranks the nodes of a changing set for many keys, and caches the results.

    A set that lost or gained a few nodes costs a few hashes for each key, not all of them: departed nodes are walked
    past, new ones are put in their place. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranked = _Ranked(0, (), frozenset(), frozenset())
        # key -> (generation, how many of its nodes were looked at, the best as `_score` gives them). Never edited.
        self._best: dict[str, tuple[int, int, tuple[bytes, ...]]] = {}

    def order(self, key: str, members: frozenset[str]) -> Iterator[str]:
        """Yield `members` from the best home for `key` to the worst; the first few are cheap.

        Pass the same frozenset while it doesn't change: its identity tells so at once.
        """
        ranked = self._ranked
        if ranked.members is not members:
            ranked = self._moved_to(members)
        given = 0
        for scored in self._best_of(key, ranked):
            node = _decode(scored)
            if node in members:
                given += 1
                yield node
        if given < len(members):
            # The caller wants more than was cached: rank all, and continue after the last one yielded.
            yield from rank_nodes(key, members)[given:]

    def _best_of(self, key: str, ranked: _Ranked) -> tuple[bytes, ...]:
        kept: tuple[bytes, ...] = ()
        newcomers = ranked.nodes
        cached = self._best.get(key)
        if cached is not None and cached[0] == ranked.generation and cached[1] <= len(ranked.nodes):
            if cached[1] == len(ranked.nodes):
                return cached[2]
            # Only nodes that joined since can enter the best.
            kept, newcomers = cached[2], ranked.nodes[cached[1] :]
        best = tuple(heapq.nlargest(_KEPT, (*kept, *_score(key, newcomers))))
        if len(key) <= _MAX_KEY:
            if len(self._best) >= _MAX_KEYS:
                self._best = {}
            self._best[key] = (ranked.generation, len(ranked.nodes), best)
        return best

    def _moved_to(self, members: frozenset[str]) -> _Ranked:
        with self._lock:
            ranked = self._ranked
            came = members - ranked.known
            departed = len(ranked.known) + len(came) - len(members)
            if departed > max(_MIN_DEPARTED, len(members)):
                moved = _Ranked(ranked.generation + 1, tuple(map(_encode, members)), members, members)
            elif came:
                moved = _Ranked(ranked.generation, (*ranked.nodes, *map(_encode, came)), ranked.known | came, members)
            else:
                moved = ranked._replace(members=members)
            self._ranked = moved
        return moved
