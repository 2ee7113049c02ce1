"""Series of metrics, and the alerts that they fire."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

SERIES = 'namespace="jhub", service="hub-roost-{component}"'


class Firing(NamedTuple):
    """Time series, a moment, and the alerts that must fire then: label sets by name of the alert."""

    series: Mapping[str, str]
    minutes: int
    alerts: Mapping[str, Sequence[Mapping[str, str]]]


def controllers(metric: str, **labels: str) -> str:
    return _series(f"roost_controllers_{metric}", "controllers", labels)


def webhook(metric: str, **labels: str) -> str:
    return _series(f"roost_webhook_{metric}", "webhook", labels)


def recorder(metric: str, **labels: str) -> str:
    return _series(f"roost_recorder_{metric}", "recorder", labels)


def fail_open(entry: str) -> str:
    """What an API server counts of an entry of a MutatingWebhookConfiguration."""
    labels = f'name="{entry}.roost.hub.jupyter.org", job="apiserver", instance="10.0.0.1:443"'
    return f"apiserver_admission_webhook_fail_open_count{{{labels}}}"


def _series(name: str, component: str, labels: Mapping[str, str]) -> str:
    given = [SERIES.format(component=component), *(f'{key}="{value}"' for key, value in labels.items())]
    return f"{name}{{{', '.join(given)}}}"


def starts(metric: str, **labels: str) -> str:
    """A metric of starts of one hub's users."""
    return _series(f"roost_{metric}", "recorder", {"pod_class": "user", "hub": "hub", **labels})


def runs(metric: str, **labels: str) -> str:
    """A metric of starts until containers run, as the controllers see them."""
    return controllers(metric, pod_class="user", **{"hub": "hub", **labels})


RECORDS = {recorder("recording"): "1x120", recorder("database_failing"): "0x120"}
LEADS = {controllers("leader", pod="a"): "1x120", controllers("leader", pod="b"): "0x120", **RECORDS}
NOBODY: Mapping[str, Sequence[Mapping[str, str]]] = {}
API_SERVER = 'up{job="apiserver", instance="10.0.0.1:443"}'
USERS_OF_HUB = {"pod_class": "user", "hub": "hub"}
OWN_ENTRY = "user.hub.jhub.roost.hub.jupyter.org"
FIRINGS = {
    "all is well": Firing(
        {
            **LEADS,
            controllers("gate_oldest_wait_seconds"): "0+60x20 0x100",
            controllers("evictions_total"): "0+5x120",
            controllers("eviction_budget_per_minute"): "5x120",
            controllers("plan_failures_total", controller="image-gate"): "0x120",
            controllers("actions_total", controller="image-gate", kind="ChangeNode", outcome="done"): "0+9x120",
            controllers("gate_pull_faults", reason="not-found"): "1x10 0x110",
            webhook("unplaced_pods", **{"class": "user"}): "0x120",
            webhook("certificate_expiry_timestamp_seconds", kind="leaf"): "604800x120",
            # A busy moment now and then, and no gap so far.
            recorder("behind_seconds"): "0x10 100x2 0x100",
            recorder("last_gap_timestamp_seconds"): "0x120",
        },
        60,
        NOBODY,
    ),
    "no replica is there": Firing({}, 15, {"RoostControllersWithoutLeader": [{}], "RoostRecorderNotRecording": [{}]}),
    "two replicas and no leader": Firing(
        {**RECORDS, controllers("leader", pod="a"): "1x20 0x100", controllers("leader", pod="b"): "0x120"},
        40,
        {"RoostControllersWithoutLeader": [{}]},
    ),
    "a change of leaders": Firing(
        {**RECORDS, controllers("leader", pod="a"): "1x20 0x100", controllers("leader", pod="b"): "0x21 1x99"},
        40,
        NOBODY,
    ),
    "a plan fails": Firing(
        {**LEADS, controllers("plan_failures_total", controller="image-gate"): "0x10 1+2x100"},
        30,
        {"RoostPlanFailures": [{"controller": "image-gate"}]},
    ),
    "writes are refused": Firing(
        {**LEADS, controllers("actions_total", controller="m", kind="EvictPod", outcome="failed"): "0x10 1+2x100"},
        30,
        {"RoostActionsFail": [{"controller": "m", "kind": "EvictPod"}]},
    ),
    "an image doesn't come": Firing(
        {**LEADS, controllers("gate_oldest_wait_seconds"): "0+60x120"}, 40, {"RoostImageGateStuck": [{}]}
    ),
    "an image can't be pulled": Firing(
        {**LEADS, controllers("gate_pull_faults", reason="denied"): "0x10 2x100"},
        40,
        {"RoostImagesCannotBePulled": [{"reason": "denied"}]},
    ),
    "a deadline passes": Firing(
        {**LEADS, controllers("gate_nodes_opened_without_images"): "0x10 1x100"},
        12,
        {"RoostNodesOpenedWithoutImages": [{}]},
    ),
    "the mover runs wild": Firing(
        {**LEADS, controllers("evictions_total"): "0x10 0+7x100", controllers("eviction_budget_per_minute"): "5x120"},
        40,
        {"RoostMoverOverBudget": [{}]},
    ),
    "a mover that may not evict does": Firing(
        {**LEADS, controllers("evictions_total"): "0x10 1x100", controllers("eviction_budget_per_minute"): "0x120"},
        15,
        {"RoostMoverOverBudget": [{}]},
    ),
    "a certificate nears its end": Firing(
        {**LEADS, webhook("certificate_expiry_timestamp_seconds", kind="leaf"): "86000x120"},
        10,
        {"RoostCertificateNearExpiry": [{"kind": "leaf"}]},
    ),
    "pods come through unplaced": Firing(
        {**LEADS, webhook("unplaced_pods", **{"class": "user"}): "0x5 3x100"},
        30,
        {"RoostPodsUnplaced": [{"class": "user"}]},
    ),
    "the API server can't reach the webhook": Firing(
        {**LEADS, fail_open("user.hub.jhub"): "0+1x100"}, 20, {"RoostAdmissionFailedOpen": [{"name": OWN_ENTRY}]}
    ),
    "the API server couldn't reach the webhook once, and its counter appears as 1": Firing(
        {**LEADS, API_SERVER: "1x120", fail_open("user.hub.jhub"): "_x20 1x100"},
        27,
        {"RoostAdmissionFailedOpen": [{"name": OWN_ENTRY}]},
    ),
    "the API server couldn't reach the webhook once, long ago": Firing(
        {**LEADS, API_SERVER: "1x120", fail_open("user.hub.jhub"): "_x20 1x100"}, 60, NOBODY
    ),
    "Prometheus meets an API server that counts already": Firing(
        {**LEADS, API_SERVER: "_x20 1x100", fail_open("user.hub.jhub"): "_x20 7x100"}, 27, NOBODY
    ),
    "the API server can't reach webhooks of other releases": Firing(
        {
            **LEADS,
            **{fail_open(entry): "0+1x100" for entry in ("user.other.jhub", "user.hub.other", "user.my.hub.jhub")},
            'apiserver_admission_webhook_fail_open_count{name="user.hub.jhub.example.org"}': "0+1x100",
        },
        20,
        NOBODY,
    ),
    "the scheduler is away": Firing(
        {
            **LEADS,
            webhook("part_away", part="scheduler", pod="a"): "0x10 1x110",
            webhook("part_away", part="scheduler", pod="b"): "0x10 1x110",
            webhook("pods_waiting_for_scheduler", **{"class": "user"}): "0x5 2x115",
            webhook("pods_waiting_for_scheduler", **{"class": "build"}): "0x120",
        },
        20,
        {"RoostSchedulerAway": [{}], "RoostPodsWaitForScheduler": [{"class": "user"}]},
    ),
    "one replica of the webhook misses the scheduler, and users wait for room": Firing(
        {
            **LEADS,
            webhook("part_away", part="scheduler", pod="a"): "1x120",
            webhook("part_away", part="scheduler", pod="b"): "0x120",
            webhook("pods_waiting_for_scheduler", **{"class": "user"}): "2x120",
        },
        20,
        NOBODY,
    ),
    "another part of Roost's is away": Firing({**LEADS, webhook("part_away", part="another"): "1x120"}, 20, NOBODY),
    "a policy is refused": Firing(
        {**LEADS, webhook("policy_reload_failures_total"): "0x10 1x100"}, 15, {"RoostPolicyRefused": [{}]}
    ),
    "a watch of the recorder stays away": Firing(
        {**LEADS, recorder("recording"): "1x10 0x110"}, 25, {"RoostRecorderNotRecording": [{}]}
    ),
    "the recorder is replaced": Firing({**LEADS, recorder("recording"): "1x10 0x5 1x105"}, 25, NOBODY),
    "the recorder's database fails": Firing(
        {
            **LEADS,
            recorder("recording"): "1x10 0x110",
            recorder("database_failing"): "0x10 1x110",
            recorder("behind_seconds"): "0x10 0+60x110",
        },
        40,
        {"RoostRecorderDatabaseFails": [{}]},
    ),
    "the recorder is too slow": Firing(
        {**LEADS, recorder("behind_seconds"): "0x10 30+30x110"}, 30, {"RoostRecorderBehind": [{}]}
    ),
    # Prometheus' tests begin at the Unix time 0, so the gap was ten minutes later.
    "the recorder missed something": Firing(
        {**LEADS, recorder("last_gap_timestamp_seconds"): "0x10 600x110"}, 69, {"RoostRecorderGap": [{}]}
    ),
    "the recorder missed something long ago": Firing(
        {**LEADS, recorder("last_gap_timestamp_seconds"): "0x10 600x110"}, 71, NOBODY
    ),
    "one start in five takes ten minutes": Firing(
        {
            **LEADS,
            **{
                runs("start_seconds_bucket", le=bound): f"0+{count}x120"
                for bound, count in (("30.0", 8), ("300.0", 8), ("600.0", 10), ("+Inf", 10))
            },
            runs("start_seconds_count"): "0+10x120",
        },
        70,
        {"RoostStartsSlow": [USERS_OF_HUB]},
    ),
    "one start in twenty takes ten minutes, and a hub's only start": Firing(
        {
            **LEADS,
            **{
                runs("start_seconds_bucket", le=bound): f"0+{count}x120"
                for bound, count in (("30.0", 19), ("300.0", 19), ("600.0", 20), ("+Inf", 20))
            },
            runs("start_seconds_count"): "0+20x120",
            **{
                runs("start_seconds_bucket", hub="lone", le=bound): f"0x60 {count}x60"
                for bound, count in (("300.0", 0), ("600.0", 1), ("+Inf", 1))
            },
            runs("start_seconds_count", hub="lone"): "0x60 1x60",
        },
        70,
        NOBODY,
    ),
    "a third of the starts fail": Firing(
        {**LEADS, runs("starts_total", result="started"): "0+2x120", runs("starts_total", result="failed"): "0+1x120"},
        40,
        {"RoostStartsFail": [USERS_OF_HUB]},
    ),
    "a hundredth of the starts fail, and of a quiet hub's the only one": Firing(
        {
            **LEADS,
            runs("starts_total", result="started"): "0+99x120",
            runs("starts_total", result="failed"): "0+1x120",
            runs("starts_total", result="failed", hub="quiet"): "0x20 1x100",
        },
        40,
        NOBODY,
    ),
    "two starts of three are cold": Firing(
        {
            **LEADS,
            starts("starts_total", result="warm"): "0+1x400",
            starts("starts_total", result="cold"): "0+2x400",
            starts("starts_total", result="unknown"): "0+9x400",
            starts("starts_total", result="cold", hub="quiet"): "0x20 9x400",
            # Builds are never warm for long.
            starts("starts_total", result="cold", hub="builds", pod_class="build"): "0+9x400",
        },
        100,
        {"RoostStartsCold": [{"hub": "hub"}]},
    ),
    "one start of three is cold": Firing(
        {**LEADS, starts("starts_total", result="warm"): "0+2x400", starts("starts_total", result="cold"): "0+1x400"},
        100,
        NOBODY,
    ),
    "a user waits until the hub gives up": Firing(
        {**LEADS, runs("oldest_pending_seconds"): "0x9 0+60x4 280 0x100"}, 20, {"RoostPodsPending": [USERS_OF_HUB]}
    ),
    "a user waited, and users wait a little": Firing(
        {
            **LEADS,
            runs("oldest_pending_seconds"): "0x9 0+60x4 280 0x100",
            runs("oldest_pending_seconds", hub="other"): "0x9 0+60x4 0x100",
        },
        30,
        NOBODY,
    ),
    "another release's trouble": Firing(
        {
            **LEADS,
            'roost_controllers_gate_oldest_wait_seconds{namespace="other", service="hub-roost-controllers"}': "9999x99",
        },
        40,
        NOBODY,
    ),
}
