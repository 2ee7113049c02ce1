"""Make a launch trace that can be given away: names become keyed hashes; users and commits are left out.

lab/docs/shared-traces.md says what such a trace holds and what it can't leak. Lines are the recorder's launches,
version 2; of several hubs version 3, which tells them apart.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_lab.traces import recorder
from roost_lab.traces.launch_line import EXACT
from roost_lab.traces.pushes import names_a_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roost_lab.traces.launch_line import LaunchDetails, LaunchLine

_VERSION: Final = 2
_WITH_HUB: Final = 3
_WEEK_SECONDS: Final = 7 * 86400
# Bytes of a name's hash; 20 look like a commit, which the simulator's `pushes_per_day` leaves as it is.
_NAME_BYTES, _COMMIT_BYTES = 10, 20
# Exact sizes would tell which public image it is.
_SIZE_DIGITS: Final = 2


class Sharing(NamedTuple):
    """How a trace is made."""

    # 16 to 64 random bytes. Throw them away: who has them can test guesses of names.
    key: bytes
    # By how many weeks all times are moved.
    weeks: int = 0
    # Repositories and images launched less often get a new name at each launch.
    rare: int = 1


def shared_lines(launches: Sequence[LaunchLine], sharing: Sharing) -> Iterator[str]:
    """A JSON object for each launch, in the order of time; those of one time keep theirs."""
    repositories = Counter(line.launch.repository for line in launches)
    images = Counter(line.launch.image for line in launches)
    has_hubs = len({line.launch.hub for line in launches}) > 1
    for number, line in enumerate(sorted(launches, key=lambda line: line.stamp)):
        launch = line.launch
        unlinked = f"{number}\0"
        by_repository = unlinked if repositories[launch.repository] < sharing.rare else ""
        by_image = unlinked if images[launch.image] < sharing.rare else by_repository
        yield json.dumps(
            {
                "timestamp": _time(line, sharing.weeks),
                "schema": recorder.SCHEMA,
                "version": _WITH_HUB if has_hubs else _VERSION,
                **({"hub": launch.hub and _hash(sharing.key, "hub", launch.hub, _NAME_BYTES)} if has_hubs else {}),
                "repository": launch.repository
                and _hash(sharing.key, "repository", by_repository + launch.repository, _NAME_BYTES),
                "image": _image(sharing.key, launch.image, by_image),
                "image_bytes": _rounded(launch.image_bytes),
                "cpu_millicores": launch.cpu_millicores,
                "memory_bytes": launch.memory_bytes,
                **_session(launch),
            },
            separators=(",", ":"),
        )


def _time(line: LaunchLine, weeks: int) -> str:
    """As exact as it was, but not finer than a second."""
    moment = datetime.fromtimestamp(int(line.stamp) + weeks * _WEEK_SECONDS, UTC)
    return moment.isoformat(timespec="microseconds" if line.resolution == EXACT else "seconds")


def _image(key: bytes, image: str, salt: str) -> str:
    if names_a_commit(image):
        return f"image@{_hash(key, 'image', salt + image, _COMMIT_BYTES)}"
    return _hash(key, "image", salt + image, _NAME_BYTES)


def _hash(key: bytes, kind: str, name: str, size: int) -> str:
    return blake2b(f"{kind}\0{name}".encode(errors="surrogatepass"), key=key, digest_size=size).hexdigest()


def _rounded(amount: int | None) -> int | None:
    return None if amount is None else int(float(f"{amount:.{_SIZE_DIGITS - 1}e}"))


def _session(launch: LaunchDetails) -> dict[str, float | None]:
    """The session counts from ready: how long the start took is not in a shared trace."""
    if launch.session_seconds is None:
        return {"ready_seconds": None, "seconds": None}
    return {"ready_seconds": 0.0, "seconds": float(round(launch.session_seconds))}
