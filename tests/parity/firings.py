"""Series of metrics, and the alerts that they fire."""

import re
from collections.abc import Mapping
from typing import NamedTuple

Labels = dict[str, str]


class Firing(NamedTuple):
    """Time series, a moment, and the alerts that must fire then: label sets by name of the alert."""

    series: dict[str, str]
    minutes: int
    alerts: Mapping[str, list[Labels]]


OWN_ENTRY = "user.hub.jhub.roost.hub.jupyter.org"
# By a line's first word: the beginning of the metric's name, its program, and labels unless others are given.
PROGRAMS: dict[str, tuple[str, str, Labels]] = {
    "controllers": ("roost_controllers_", "controllers", {}),
    "webhook": ("roost_webhook_", "webhook", {}),
    "recorder": ("roost_recorder_", "recorder", {}),
    # Starts of one hub's users: until containers run, as the controllers see them, and as the recorder does.
    "runs": ("roost_controllers_", "controllers", {"pod_class": "user", "hub": "hub"}),
    "starts": ("roost_", "recorder", {"pod_class": "user", "hub": "hub"}),
}
RECORDS = "recorder recording: 1x120\nrecorder database_failing: 0x120"
LEADS = f"{RECORDS}\ncontrollers leader pod=a: 1x120\ncontrollers leader pod=b: 0x120"
# `CASE @ MINUTES: ALERT label=value …, ALERT …`, then a series a line. Beside them one replica leads, and the recorder
# records; after `alone` it only records, after `nothing` there is nothing.
TABLE = """
all is well @ 60:
  controllers gate_oldest_wait_seconds: 0+60x20 0x100
  controllers evictions_total: 0+5x120
  controllers eviction_budget_per_minute: 5x120
  controllers plan_failures_total controller=image-gate: 0x120
  controllers actions_total controller=image-gate kind=ChangeNode outcome=done: 0+9x120
  controllers gate_pull_faults reason=not-found: 1x10 0x110
  webhook unplaced_pods class=user: 0x120
  webhook certificate_expiry_timestamp_seconds kind=leaf: 604800x120
  recorder behind_seconds: 0x10 100x2 0x100
  recorder last_gap_timestamp_seconds: 0x120
no replica is there @ 15: RoostControllersWithoutLeader, RoostRecorderNotRecording
  nothing
two replicas and no leader @ 40: RoostControllersWithoutLeader
  alone
  controllers leader pod=a: 1x20 0x100
  controllers leader pod=b: 0x120
a change of leaders @ 40:
  alone
  controllers leader pod=a: 1x20 0x100
  controllers leader pod=b: 0x21 1x99
a plan fails @ 30: RoostPlanFailures controller=image-gate
  controllers plan_failures_total controller=image-gate: 0x10 1+2x100
writes are refused @ 30: RoostActionsFail controller=m kind=EvictPod
  controllers actions_total controller=m kind=EvictPod outcome=failed: 0x10 1+2x100
an image doesn't come @ 40: RoostImageGateStuck
  controllers gate_oldest_wait_seconds: 0+60x120
an image can't be pulled @ 40: RoostImagesCannotBePulled reason=denied
  controllers gate_pull_faults reason=denied: 0x10 2x100
a deadline passes @ 12: RoostNodesOpenedWithoutImages
  controllers gate_nodes_opened_without_images: 0x10 1x100
the mover runs wild @ 40: RoostMoverOverBudget
  controllers evictions_total: 0x10 0+7x100
  controllers eviction_budget_per_minute: 5x120
a mover that may not evict does @ 15: RoostMoverOverBudget
  controllers evictions_total: 0x10 1x100
  controllers eviction_budget_per_minute: 0x120
a certificate nears its end @ 10: RoostCertificateNearExpiry kind=leaf
  webhook certificate_expiry_timestamp_seconds kind=leaf: 86000x120
pods come through unplaced @ 30: RoostPodsUnplaced class=user
  webhook unplaced_pods class=user: 0x5 3x100
the API server can't reach the webhook @ 20: RoostAdmissionFailedOpen name=user.hub.jhub.roost.hub.jupyter.org
  failed-open user.hub.jhub: 0+1x100
it couldn't reach the webhook once, and its counter appears as 1 @ 27: RoostAdmissionFailedOpen name=OWN_ENTRY
  up: 1x120
  failed-open user.hub.jhub: _x20 1x100
it couldn't reach the webhook once, long ago @ 60:
  up: 1x120
  failed-open user.hub.jhub: _x20 1x100
Prometheus meets an API server that counts already @ 27:
  up: _x20 1x100
  failed-open user.hub.jhub: _x20 7x100
the API server can't reach webhooks of other releases @ 20:
  failed-open user.other.jhub: 0+1x100
  failed-open user.hub.other: 0+1x100
  failed-open user.my.hub.jhub: 0+1x100
  apiserver_admission_webhook_fail_open_count{name="user.hub.jhub.example.org"}: 0+1x100
the scheduler is away @ 20: RoostSchedulerAway, RoostPodsWaitForScheduler class=user
  webhook part_away part=scheduler pod=a: 0x10 1x110
  webhook part_away part=scheduler pod=b: 0x10 1x110
  webhook pods_waiting_for_scheduler class=user: 0x5 2x115
  webhook pods_waiting_for_scheduler class=build: 0x120
one replica of the webhook misses the scheduler, and users wait for room @ 20:
  webhook part_away part=scheduler pod=a: 1x120
  webhook part_away part=scheduler pod=b: 0x120
  webhook pods_waiting_for_scheduler class=user: 2x120
another part of Roost's is away @ 20:
  webhook part_away part=another: 1x120
a policy is refused @ 15: RoostPolicyRefused
  webhook policy_reload_failures_total: 0x10 1x100
a watch of the recorder stays away @ 25: RoostRecorderNotRecording
  recorder recording: 1x10 0x110
the recorder is replaced @ 25:
  recorder recording: 1x10 0x5 1x105
the recorder's database fails @ 40: RoostRecorderDatabaseFails
  recorder recording: 1x10 0x110
  recorder database_failing: 0x10 1x110
  recorder behind_seconds: 0x10 0+60x110
the recorder is too slow @ 30: RoostRecorderBehind
  recorder behind_seconds: 0x10 30+30x110
the recorder missed something ten minutes after the Unix time 0, at which Prometheus' tests begin @ 69: RoostRecorderGap
  recorder last_gap_timestamp_seconds: 0x10 600x110
the recorder missed something long ago @ 71:
  recorder last_gap_timestamp_seconds: 0x10 600x110
one start in five takes ten minutes @ 70: RoostStartsSlow pod_class=user hub=hub
  runs start_seconds_bucket le=30.0: 0+8x120
  runs start_seconds_bucket le=300.0: 0+8x120
  runs start_seconds_bucket le=600.0: 0+10x120
  runs start_seconds_bucket le=+Inf: 0+10x120
  runs start_seconds_count: 0+10x120
one start in twenty takes ten minutes, and a hub's only start @ 70:
  runs start_seconds_bucket le=30.0: 0+19x120
  runs start_seconds_bucket le=300.0: 0+19x120
  runs start_seconds_bucket le=600.0: 0+20x120
  runs start_seconds_bucket le=+Inf: 0+20x120
  runs start_seconds_count: 0+20x120
  runs start_seconds_bucket hub=lone le=300.0: 0x60 0x60
  runs start_seconds_bucket hub=lone le=600.0: 0x60 1x60
  runs start_seconds_bucket hub=lone le=+Inf: 0x60 1x60
  runs start_seconds_count hub=lone: 0x60 1x60
a third of the starts fail @ 40: RoostStartsFail pod_class=user hub=hub
  runs starts_total result=started: 0+2x120
  runs starts_total result=failed: 0+1x120
a hundredth of the starts fail, and of a quiet hub's the only one @ 40:
  runs starts_total result=started: 0+99x120
  runs starts_total result=failed: 0+1x120
  runs starts_total result=failed hub=quiet: 0x20 1x100
two starts of three are cold, and builds are never warm for long @ 100: RoostStartsCold hub=hub
  starts starts_total result=warm: 0+1x400
  starts starts_total result=cold: 0+2x400
  starts starts_total result=unknown: 0+9x400
  starts starts_total result=cold hub=quiet: 0x20 9x400
  starts starts_total result=cold hub=builds pod_class=build: 0+9x400
one start of three is cold @ 100:
  starts starts_total result=warm: 0+2x400
  starts starts_total result=cold: 0+1x400
a user waits until the hub gives up @ 20: RoostPodsPending pod_class=user hub=hub
  runs oldest_pending_seconds: 0x9 0+60x4 280 0x100
a user waited, and users wait a little @ 30:
  runs oldest_pending_seconds: 0x9 0+60x4 280 0x100
  runs oldest_pending_seconds hub=other: 0x9 0+60x4 0x100
another release's trouble @ 40:
  roost_controllers_gate_oldest_wait_seconds{namespace="other", service="hub-roost-controllers"}: 9999x99
""".replace("OWN_ENTRY", OWN_ENTRY)


def _series(text: str) -> str:
    """`PROGRAM METRIC label=value …` as Prometheus writes a series."""
    program, *words = text.split(" ")
    if program == "up":
        return 'up{job="apiserver", instance="10.0.0.1:443"}'
    if program == "failed-open":  # an entry of a MutatingWebhookConfiguration, as an API server counts it
        labels = f'name="{words[0]}.roost.hub.jupyter.org", job="apiserver", instance="10.0.0.1:443"'
        return f"apiserver_admission_webhook_fail_open_count{{{labels}}}"
    if program not in PROGRAMS:
        return text
    beginning, component, usual = PROGRAMS[program]
    given = {"namespace": "jhub", "service": f"hub-roost-{component}", **usual, **_labels(words[1:])}
    return f"{beginning}{words[0]}{{" + ", ".join(f'{key}="{value}"' for key, value in given.items()) + "}"


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
        {_series(key): values for key, _, values in (x.rpartition(": ") for x in given)}, int(minutes), alerts
    )


FIRINGS = {
    name: _firing(head, body.strip().split("\n  "))
    for name, head, body in re.findall(r"^(\S.*) @ (.*)\n((?:  .*\n)+)", TABLE, re.MULTILINE)
}
