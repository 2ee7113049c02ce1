"""Read launches as `roost records export` writes them: roost.hub.jupyter.org/launch, version 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from roost_core.placement.labels import USER_CLASS
from roost_core.release.reader import DNS_LABEL
from roost_lab.traces.counts import show
from roost_lab.traces.launch_line import LONGEST, LaunchDetails, UnusableLine
from roost_lab.units import DAY_SECONDS

SCHEMA: Final = "roost.hub.jupyter.org/launch"
VERSIONS: Final = range(3, 4)
_TIMES: Final = ("seconds", "ready_seconds")
_GITHUB: Final = "https://github.com/"
_MOST_IMAGE_BYTES: Final = 10**13
_MOST_MILLICORES: Final = 10**7
_MOST_MEMORY_BYTES: Final = 10**15
_MOST_SECONDS: Final = 366 * DAY_SECONDS


def read_entry(entry: Mapping[str, Any]) -> LaunchDetails:
    """What was launched; impossible amounts are left out and noted. Raises UnusableLine if it isn't
    a user's launch.

    `repository` is "" where the pod doesn't name one, as without BinderHub. A session lasts from
    ready to gone.
    """
    if entry.get("class", USER_CLASS) != USER_CLASS:
        raise UnusableLine(f"class {show(entry['class'])} isn't `user`")
    repository = _text(entry, "repository")
    ref = _text(entry, "ref")
    image = _text(entry, "image")
    hub = _text(entry, "hub")
    if hub and not DNS_LABEL.fullmatch(hub):
        raise UnusableLine(f"`hub` is {show(hub)}, not the name of a namespace")
    if not image:
        if not repository:
            raise UnusableLine("neither `image` nor `repository` is known")
        image = f"{repository}@{ref}" if ref else repository
    notes: list[str] = []
    seconds = _amount(entry, "seconds", _MOST_SECONDS, notes)
    ready_seconds = _amount(entry, "ready_seconds", _MOST_SECONDS, notes)
    session_seconds = None
    if seconds is not None and ready_seconds is not None:
        session_seconds = max(0.0, seconds - ready_seconds)
    image_bytes = _whole(_amount(entry, "image_bytes", _MOST_IMAGE_BYTES, notes))
    cpu_millicores = _whole(_amount(entry, "cpu_millicores", _MOST_MILLICORES, notes))
    memory_bytes = _whole(_amount(entry, "memory_bytes", _MOST_MEMORY_BYTES, notes))
    return LaunchDetails(
        repository=_one_spelling(repository),
        image=image,
        image_bytes=image_bytes,
        session_seconds=session_seconds,
        cpu_millicores=cpu_millicores,
        memory_bytes=memory_bytes,
        hub=hub,
        notes=tuple(notes),
    )


def _one_spelling(repository: str) -> str:
    """A repository as every launch of it has it: GitHub takes its names in any case."""
    folded = repository.casefold()
    known = folded if folded.startswith(_GITHUB) else repository
    return known.removesuffix(".git")


def _text(entry: Mapping[str, Any], key: str) -> str:
    text = entry.get(key)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise UnusableLine(f"`{key}` isn't a text of up to {LONGEST} characters")
    return text


def _amount(entry: Mapping[str, Any], key: str, most: float, notes: list[str]) -> float | None:
    """A number of 0 to `most`; None: it isn't known, or is noted as impossible.

    Of anything but a time, the recorder writes 0 for what it doesn't know.
    """
    number = entry.get(key)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= most:
        notes.append(f"`{key}` isn't a number of 0 to {most:g}: drawn instead")
        return None
    return number if number or key in _TIMES else None


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
