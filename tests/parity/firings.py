"""Series of metrics, and the alerts that they fire."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from generator.render.kube_scheduler import SCHEDULER_TAGS
from tests.harness.binaries import NEWEST_MINOR
from tests.recorded_data import DATA
from tools.release.version import version_of

Labels = dict[str, str]


class Firing(NamedTuple):
    """Time series, a moment, and the alerts that must fire then: label sets by name of the
    alert.
    """

    series: dict[str, str]
    minutes: int
    alerts: Mapping[str, list[Labels]]


OWN_ENTRY = "user.hub.jhub.roost.hub.jupyter.org"
# By a line's first word: the beginning of the metric's name, its program, and labels unless others
# are given.
PROGRAMS: dict[str, tuple[str, str, Labels]] = {
    "controllers": ("roost_controllers_", "controllers", {}),
    "webhook": ("roost_webhook_", "webhook", {}),
    "recorder": ("roost_recorder_", "recorder", {}),
    "seating": ("roost_seating_", "seating", {}),
    # Starts of one hub's users: until containers run, as the controllers see them, and as the
    # recorder does.
    "runs": ("roost_controllers_", "controllers", {"pod_class": "user", "hub": "hub"}),
    "starts": ("roost_", "recorder", {"pod_class": "user", "hub": "hub"}),
}
RECORDS = (
    "recorder recording: 1x120\nrecorder database_failing: 0x120\nseating hub_errors_total: 0x120"
)
LEADS = f"{RECORDS}\ncontrollers leader pod=a: 1x120\ncontrollers leader pod=b: 0x120"


def _series(text: str) -> str:
    """`PROGRAM METRIC label=value …` as Prometheus writes a series."""
    program, *words = text.split(" ")
    # kube-state-metrics' of a Deployment
    if program == "deployment":
        labels = ", ".join(f'{key}="{value}"' for key, value in _labels(words[1:]).items())
        return f'kube_deployment_{words[0]}{{namespace="jhub", {labels}}}'
    # kube-state-metrics' of a container
    if program == "container":
        labels = ", ".join(f'{key}="{value}"' for key, value in _labels(words[1:]).items())
        return f'kube_pod_container_{words[0]}{{namespace="jhub", {labels}}}'
    # calls of an entry, as an API server counts them
    if program == "called":
        return (
            "apiserver_admission_webhook_admission_duration_seconds_count"
            f'{{name="{words[0]}.roost.hub.jupyter.org", job="apiserver"}}'
        )
    if program == "up":
        return 'up{job="apiserver", instance="10.0.0.1:443"}'
    # an entry of a MutatingWebhookConfiguration, as an API server counts it
    if program == "failed-open":
        labels = (
            f'name="{words[0]}.roost.hub.jupyter.org", job="apiserver", instance="10.0.0.1:443"'
        )
        return f"apiserver_admission_webhook_fail_open_count{{{labels}}}"
    if program not in PROGRAMS:
        return text
    beginning, component, usual = PROGRAMS[program]
    given = {
        "namespace": "jhub",
        "service": f"hub-roost-{component}",
        **usual,
        **_labels(words[1:]),
    }
    return (
        f"{beginning}{words[0]}{{"
        + ", ".join(f'{key}="{value}"' for key, value in given.items())
        + "}"
    )


def _labels(words: list[str]) -> Labels:
    return dict(word.split("=", 1) for word in words)


def _firing(head: str, lines: list[str]) -> Firing:
    minutes, _, said = head.partition(":")
    beside = {"nothing": "", "alone": RECORDS}.get(lines[0], LEADS)
    given = [line for line in (*beside.splitlines(), *lines) if ": " in line]
    alerts: dict[str, list[Labels]] = {}
    for alert in filter(None, said.strip().split(", ")):
        name, *labels = alert.split(" ")
        alerts.setdefault(name, []).append(_labels(labels))
    return Firing(
        {_series(key): values for key, _, values in (x.rpartition(": ") for x in given)},
        int(minutes),
        alerts,
    )


# With the tags of images that the values' defaults have.
_TEXT = (
    (DATA / "firings.txt")
    .read_text()
    .replace("@VERSION@", version_of())
    .replace("@SCHEDULER@", SCHEDULER_TAGS[NEWEST_MINOR])
)
FIRINGS = {
    name: _firing(head, body.strip().split("\n  "))
    for name, head, body in re.findall(r"^([^#\s].*) @ (.*)\n((?:  .*\n)+)", _TEXT, re.MULTILINE)
}
