"""Seating has a token that the hub takes, and the hub answers."""

from typing import Final

from roost.doctor.conditions import State, conditions
from roost.doctor.evidence import (
    HUB_VALUES,
    LINE_LENGTH,
    labelled,
    log_lines,
    path_of,
    unreadable_log,
)
from roost.doctor.findings import CheckReport, error, warning
from roost.doctor.install import Install
from roost_core.kube.client import ApiError
from roost_core.placement.labels import SEATING_SERVICE

# As zero-to-jupyterhub names a service's token in its Secret.
_KEY: Final = f"hub.services.{SEATING_SERVICE}.apiToken"
# What seating logs when it can't work; why follows.
_TROUBLE: Final = "nothing is started or stopped: "
_FIX: Final = (
    f"{HUB_VALUES}, give hub.services.{SEATING_SERVICE} and its role in hub.loadRoles as"
    " docs/seated.md has them, and upgrade the hub."
)
_BROKEN: Final = conditions(State.BROKEN, "seating")


def check(install: Install) -> CheckReport:
    deployment = install.component("seating")
    yield "seating's token, and what the hub answers" if deployment else "no seating is used"
    if deployment is None:
        return
    namespace = install.release.namespace
    secret = install.values["seating"]["tokenSecret"]
    try:
        found = install.client.find(f"/api/v1/namespaces/{namespace}/secrets/{secret}")
        has_token = bool(((found or {}).get("data") or {}).get(_KEY))
    except ApiError:
        # Who may not get Secrets is told by what seating itself says.
        has_token = True
    if not has_token:
        yield error(
            f"Secret {namespace}/{secret} has no key {_KEY}, so seating has no token and starts no"
            " server.",
            f"{_FIX} If the Secret has another name: seating.tokenSecret.",
            _BROKEN,
        )
        return
    live = install.client.find(path_of(deployment)) or {}
    if (live.get("status") or {}).get("readyReplicas", 0):
        return
    for pod in labelled(install.pods, deployment["spec"]["selector"]["matchLabels"]):
        name = pod["metadata"]["name"]
        try:
            lines = log_lines(install, name, "seating", {})
        except ApiError as refusal:
            yield unreadable_log(name, refusal)
            continue
        troubles = [line.partition(_TROUBLE)[2] for line in lines if _TROUBLE in line]
        if troubles:
            trouble = troubles[-1]
            fix = _FIX if "token" in trouble else "Does the hub run? Is seating.hubUrl its API?"
            yield warning(f"Seating starts no server: {trouble[:LINE_LENGTH]}", fix, _BROKEN)
