"""Each pod that waits was looked at by the scheduler that it names."""

from typing import Final

from roost.doctor.contract import Install, Object, Told, error
from roost.doctor.evidence import age_seconds, config_map_of, read_profiles, replaced, some

# A scheduler tries a pod within a second; one that starts lists all pods first.
_PATIENCE_SECONDS: Final = 60.0


def check(install: Install) -> Told:
    own = f"{install.release.name}.{install.release.namespace}."
    rendered = config_map_of(install, install.component("scheduler"))
    known = read_profiles(rendered).keys() if rendered is not None else ()
    yield f"pods without a node in {install.release.namespace}"
    waiting: dict[str, list[str]] = {}
    for pod in install.pods:
        if _is_ignored(pod):
            waiting.setdefault(str(pod["spec"].get("schedulerName", "")), []).append(pod["metadata"]["name"])
    for scheduler, names in sorted(waiting.items()):
        if scheduler in known:
            fix = "Does it lead, and run with that profile (checks leaders and profiles)?"
        elif known and scheduler.startswith(own):
            fix = (
                "The values name no such profile: give it back in scheduler.profiles, or delete these pods. A new "
                "one gets a profile that there is."
            )
        else:
            fix = f"Is that scheduler there? {replaced(install, [scheduler])}"
        yield error(
            f"Pods wait for scheduler {scheduler}, which has not looked at them for {_PATIENCE_SECONDS:.0f} s and "
            f"longer: {some(names)}.",
            fix,
        )


def _is_ignored(pod: Object) -> bool:
    """Whether no scheduler has said anything of a pod for long; a scheduling gate is said something of, too."""
    status = pod.get("status") or {}
    return (
        status.get("phase") == "Pending"
        and not (pod.get("spec") or {}).get("nodeName")
        and not pod["metadata"].get("deletionTimestamp")
        and not any(one.get("type") == "PodScheduled" for one in status.get("conditions") or [])
        and (age_seconds(pod["metadata"].get("creationTimestamp")) or 0.0) > _PATIENCE_SECONDS
    )
