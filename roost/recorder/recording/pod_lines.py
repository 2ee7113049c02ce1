"""Read the lines of a watch of pods: what a line says again, as most of them do, is not read again.

A pod's line is seven to ten kilobytes: its spec, who wrote which field, and little that is new. The second is
passed over, and a spec that is byte for byte the one of the same pod's last line is known already.
Guarantee: what is read is what `read_pod` reads of the whole line; but a pod's repository stays what it was when its
spec was read, whatever becomes of its annotations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from roost.recorder.recording.reading import KnownSpec, SeenPod, read_pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_core.placement.settings import KeySource
    from roost_core.scheduler.objects import PodSpec

JSONObject = dict[str, Any]
# Specs of pods, each kept once, and pods whose last spec is known; beyond that all are forgotten, and come again.
MAX_SPECS: Final = 50_000
# As the API server writes a line: these are keys of the pod and of its metadata, wherever else such words stand they
# stand in quotes of a quoted text. `managedFields` is the last of its object, and holds no list but itself.
_MANAGED: Final = b'"managedFields":['
_MANAGED_END: Final = b'],"'
_SPEC: Final = b'},"spec":{'
_STATUS: Final = b'},"status":{'
# Keys of an item that are ours, which no object of the API has.
_KNOWN: Final = "\0known"
_DIGEST: Final = "\0digest"
_NOTHING: Final[JSONObject] = {}
# What read_pod looks at in a spec, beside what KnownSpec has.
_PLAIN: Final = ("nodeName", "priority", "preemptionPolicy", "schedulerName", "schedulingGates")
_LISTS: Final = ("containers", "initContainers")


@dataclass(frozen=True, slots=True)
class _Last:
    """The spec of one pod's last line."""

    # Of its bytes, by a hash that is another in each process.
    digest: int
    # What the status said of resources, which count while they are changed in place.
    resources: Sequence[object]
    # As much of it as is looked at again.
    spec: JSONObject
    known: KnownSpec


class PodLines:
    """One watch of pods; one thread owns it."""

    def __init__(self, key_sources: Sequence[KeySource]) -> None:
        """Prepare. key_sources: where a pod's repository is told."""
        self._key_sources = key_sources
        self._specs: dict[PodSpec, PodSpec] = {}
        # By the pod's uid.
        self._last: dict[str, _Last] = {}

    def load(self, line: bytes) -> Any:  # noqa: ANN401 - whatever JSON the server sent
        """The watch's event, with as much of its object as `read` needs. Raises ValueError for what is no JSON."""
        cut = _cut(line)
        if cut is None:
            return orjson.loads(line)
        event, spec = cut
        item = event["object"]
        uid = str(item["metadata"].get("uid"))
        last = self._last.get(uid)
        digest = hash(spec)
        if last is not None and last.resources != _resources(item):
            last = None
        if last is not None and last.digest == digest:
            item["spec"], item[_KNOWN] = last.spec, last.known
        else:
            item["spec"], item[_DIGEST] = orjson.loads(spec), digest
            if last is not None and hash(_unbound(spec, item["spec"])) == last.digest:
                # Bound, and as it was otherwise.
                item[_KNOWN] = last.known
        if event.get("type") == "DELETED":
            self._last.pop(uid, None)
            item.pop(_DIGEST, None)
        return event

    def read(self, item: JSONObject) -> SeenPod | None:
        """What the recorder keeps of a pod, from `load` or from a list; None when it can't be read."""
        if len(self._specs) > MAX_SPECS:
            # Mostly of pods that are gone.
            self._specs.clear()
        known = item.get(_KNOWN)
        seen = read_pod(item, self._key_sources, self._specs, known=known)
        if seen is not None and _DIGEST in item:
            if len(self._last) > MAX_SPECS:
                self._last.clear()
            self._last[seen.state.uid] = _Last(
                item[_DIGEST],
                _resources(item),
                _looked_at(item["spec"]),
                KnownSpec(seen.state.spec, seen.repo, seen.ref),
            )
        return seen


def _cut(line: bytes) -> tuple[Any, bytes] | None:
    """A line's event, with 0 for its object's spec, and the spec's bytes; None when the line isn't as expected."""
    managed_at = line.find(_MANAGED)
    spec_at = line.find(_SPEC, max(0, managed_at))
    status_at = line.find(_STATUS, spec_at)
    if spec_at < 0 or status_at < 0:
        return None
    head = line[: spec_at + 1]
    if managed_at >= 0 and line[spec_at - 1 : spec_at] == b"]" and line.find(_MANAGED_END, managed_at, spec_at) < 0:
        head = line[:managed_at] + _MANAGED + b"]}"
    try:
        event = orjson.loads(b"".join((head, b',"spec":0', line[status_at + 1 :])))
        spec = event["object"]["spec"]
        is_cut = type(spec) is int and isinstance(event["object"]["metadata"], dict)
    except (ValueError, KeyError, TypeError):
        return None
    # What is left is JSON, and has the 0 where its spec was: so that was all of it.
    return (event, line[spec_at + len(_SPEC) - 1 : status_at + 1]) if is_cut else None


def _unbound(spec: bytes, read: JSONObject) -> bytes:
    """A spec's bytes without the node that it says."""
    return spec.replace(b'"nodeName":%b,' % orjson.dumps(read.get("nodeName")), b"", 1)


def _resources(item: JSONObject) -> Sequence[object]:
    """All that a pod's status says of resources; equal where they are. () for a status that can't be read."""
    status = item.get("status") or _NOTHING
    found: list[object] = []
    try:
        for key in ("containerStatuses", "initContainerStatuses"):
            found += (
                (key, one.get("name"), one["resources"], one.get("allocatedResources"))
                for one in status.get(key) or ()
                if one.get("resources") is not None
            )
        if found:
            found += (
                one.get("reason") for one in status.get("conditions") or () if one.get("type") == "PodResizePending"
            )
    except (AttributeError, TypeError):
        return ()
    return found


def _looked_at(spec: JSONObject) -> JSONObject:
    found: JSONObject = {key: spec[key] for key in _PLAIN if key in spec}
    for key in _LISTS:
        if spec.get(key):
            found[key] = [{"name": one.get("name"), "image": one.get("image")} for one in spec[key]]
    claims = [one for one in spec.get("volumes") or () if one.get("persistentVolumeClaim")]
    if claims:
        found["volumes"] = claims
    return found
