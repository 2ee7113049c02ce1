"""The users that run now were placed, and wait for a scheduler that there is."""

from roost.doctor.conditions import UNREVIEWED, State, conditions
from roost.doctor.evidence import (
    OTHER_WEBHOOK,
    admits,
    advice_for_schedulers,
    annotation_of,
    is_strangers_scheduler,
    some,
    users_of,
)
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install
from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import DEFAULT_SCHEDULER
from roost_core.placement.labels import OPT_OUT_ANNOTATION, POLICY_REVISION_ANNOTATION, USER_CLASS


def check(install: Install) -> CheckReport:
    users = users_of(install) if admits(install) else []
    yield f"{len(users)} users' pods in {install.release.namespace}"
    marks = {POLICY_REVISION_ANNOTATION, OPT_OUT_ANNOTATION}
    missed = [
        pod["metadata"]["name"]
        for pod in users
        if not marks & (pod["metadata"].get("annotations") or {}).keys()
    ]
    if missed:
        yield warning(
            f"{len(missed)} of {len(users)} users' pods were made without Roost: {some(missed)}.",
            "Older than the install: nothing to do. Else the API server didn't reach the webhook"
            " then: its metric apiserver_admission_webhook_fail_open_count tells how often.",
            follows=UNREVIEWED,
        )
    yield from _find_other_schedulers(install, users)


def _find_other_schedulers(install: Install, users: list[JSONObject]) -> CheckReport:
    """Users that Roost placed, and whose scheduler isn't Roost's."""
    profile = (install.values["podClasses"].get(USER_CLASS) or {}).get("profile")
    if install.component("scheduler") is None or not profile:
        return
    others: dict[str, list[str]] = {}
    for pod in users:
        scheduler = (pod.get("spec") or {}).get("schedulerName")
        if scheduler is None or not annotation_of(pod, POLICY_REVISION_ANNOTATION):
            continue
        if is_strangers_scheduler(install, scheduler):
            others.setdefault(scheduler, []).append(pod["metadata"]["name"])
    for scheduler, names in sorted(others.items()):
        evidence = (
            f"{len(names)} of {len(users)} users' pods were placed and left to scheduler"
            f" {scheduler}: {some(names)}."
        )
        if scheduler == DEFAULT_SCHEDULER:
            yield warning(
                evidence,
                "Roost's scheduler was away when they were created (checks programs and leaders),"
                " or not yet there.",
                follows=conditions(State.UNLED, "scheduler"),
            )
        else:
            yield warning(
                evidence,
                f"Their author or {OTHER_WEBHOOK}. {advice_for_schedulers(install, [scheduler])}",
            )
