"""CapacityBuffers are known to the API server, and heeded by an autoscaler."""

from typing import Final

from roost.doctor.contract import Finding, Install, Object, Told
from roost.doctor.evidence import age_seconds, autoscaler_words, path_of, some

# As the controllers wait before they write the Event CapacityBufferIgnored.
PATIENCE_SECONDS: Final = 120.0
_CONDITION: Final = "ReadyForProvisioning"
_FLAGS: Final = ("--capacity-buffer-controller-enabled", "--capacity-buffer-pod-injection-enabled")
_ON: Final = ("", "=true", "=1", "=t", "=T", "=TRUE", "=True")
_KARPENTER: Final = "Karpenter (from 1.14 on): the feature gate CapacityBuffer"


def check(install: Install) -> Told:
    buffers = install.of_kind("CapacityBuffer")
    said = f"{len(buffers)} CapacityBuffers and their conditions"
    yield said if buffers else "no CapacityBuffer is used"
    if not buffers:
        return
    api = buffers[0]["apiVersion"]
    if install.client.find(f"/apis/{api}") is None:
        yield Finding(
            "error",
            f"The API server doesn't serve {api}, so there can be no CapacityBuffer.",
            "Install an autoscaler with its definition (docs/headroom.md#without-placeholder-pods), or set "
            "placeholder.backend: statefulset.",
        )
        return
    yield from _find_ignored(install, [found for body in buffers if (found := install.client.find(path_of(body)))])


def _find_ignored(install: Install, there: list[Object]) -> Told:
    ignored, bare = [], []
    for buffer in there:
        name, spec = buffer["metadata"]["name"], buffer.get("spec") or {}
        age = age_seconds(buffer["metadata"].get("creationTimestamp"))
        is_young = age is not None and age < PATIENCE_SECONDS
        if not spec.get("podTemplateRef"):
            if not is_young:
                bare.append(name)
        elif spec.get("replicas") and (why := _why_unready(buffer, is_young=is_young)):
            ignored.append(f"{name} ({why})")
    if bare:
        yield Finding(
            "warning",
            f"CapacityBuffers that refer to no PodTemplate, so no room is kept: {some(bare)}.",
            "The controllers' leader writes podTemplateRef and replicas: see its Lease and log.",
        )
    if ignored:
        yield Finding(
            "error",
            f"No autoscaler says that it keeps the room of {some(ignored)}.",
            f"If no reason is given, the autoscaler lacks {_needs(install)} "
            "(docs/headroom.md#without-placeholder-pods).",
        )


def _why_unready(buffer: Object, *, is_young: bool) -> str:
    """What the autoscaler says of a buffer; empty where it keeps the room, or may not have looked yet."""
    for condition in (buffer.get("status") or {}).get("conditions") or []:
        if condition.get("type") == _CONDITION:
            said = str(condition.get("message") or condition.get("reason") or f"{_CONDITION} isn't True")
            return "" if condition.get("status") == "True" else said.rstrip(".")
    return "" if is_young else f"no condition {_CONDITION}"


def _needs(install: Install) -> str:
    """What switches CapacityBuffers on in the autoscalers that are seen; in each that is known, if none is."""
    needs = []
    for deployment in install.client.get("/apis/apps/v1/deployments")["items"]:
        words, metadata = autoscaler_words(deployment), deployment["metadata"]
        lacking = [flag for flag in _FLAGS if not any(f"{flag}{value}" in words for value in _ON)]
        if words and lacking:
            needs.append(f"{' and '.join(lacking)} in Deployment {metadata['namespace']}/{metadata['name']}")
    if install.client.find("/apis/karpenter.sh/v1/nodepools") is not None:
        needs.append(_KARPENTER)
    return "; ".join(needs) or f"what switches it on. cluster-autoscaler: {' and '.join(_FLAGS)}; {_KARPENTER}"
