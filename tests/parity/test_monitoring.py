"""Alerts and dashboard as rendered: Prometheus' own parser reads them, its engine fires them, every metric exists."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.harness.fixtures import require_binary
from tests.parity.monitored import (
    ALL_ON,
    FOREIGN,
    SCRAPED_LABELS,
    concrete,
    dashboard_of,
    groups_of,
    metrics_that_exist,
    queries_of,
    render_all,
    rules_of,
)
from tests.parity.renderers import RELEASE, roost_render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.parity.monitored import Object

SERIES = 'namespace="jhub", service="hub-roost-{component}"'


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Object]:
    return render_all(tmp_path_factory.mktemp("values"))


@pytest.fixture(scope="module")
def groups(objects: Sequence[Object]) -> list[Object]:
    return groups_of(objects)


@pytest.fixture(scope="module")
def dashboard(objects: Sequence[Object]) -> Object:
    return dashboard_of(objects)


# Every metric exists


def faults_of(query: str, known: Mapping[str, set[str]]) -> list[str]:
    """Metrics and labels of a query that nobody has."""
    bare = re.sub(r'"[^"]*"', '""', query)
    names = set(re.findall(r"\b((?:roost|apiserver|process|scheduler)_\w+)", bare))
    unknown = [f"metric {name}" for name in sorted(names - known.keys())]
    labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", bare))
    for grouping in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", bare):
        labels |= {label.strip() for label in grouping.split(",") if label.strip()}
    there = SCRAPED_LABELS.union(*(known.get(name, set()) for name in names))
    return unknown + [f"label {label}" for label in sorted(labels - there)] + ([] if names else ["no metric at all"])


def test_every_metric_and_label_of_alerts_and_dashboard_exists(
    objects: Sequence[Object], groups: list[Object], dashboard: Object
) -> None:
    known = metrics_that_exist(objects)
    queries = [*(rule["expr"] for rule in rules_of(groups)), *queries_of(dashboard)]
    faults = {query: found for query in queries if (found := faults_of(query, known))}
    assert faults == {}
    assert faults_of('sum by (clas) (roost_webhook_review_total{classs=""})', known) == [
        "metric roost_webhook_review_total",
        "label clas",
        "label classs",
    ]


def test_legends_name_labels_that_their_queries_keep(dashboard: Object) -> None:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"])))) or SCRAPED_LABELS
            kept -= {"le"}
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, target


def test_alerts_and_panels_are_named_once_and_panels_do_not_overlap(groups: list[Object], dashboard: Object) -> None:
    names = [rule["alert"] for rule in rules_of(groups)]
    assert len(set(names)) == len(names)
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert len(set(titles)) == len(titles)
    cells: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        cells |= own


def test_entries_of_the_webhook_are_named_as_the_alert_selects_them(
    objects: Sequence[Object], groups: list[Object]
) -> None:
    (names,) = [
        [entry["name"] for entry in one["webhooks"]] for one in objects if one["kind"] == "MutatingWebhookConfiguration"
    ]
    (expression,) = [rule["expr"] for rule in rules_of(groups) if rule["alert"] == "RoostAdmissionFailedOpen"]
    (selected,) = set(re.findall(r'name=~"([^"]*)"', expression))
    assert OWN_ENTRY in names
    assert all(re.fullmatch(selected, name) for name in names)


def test_two_releases_have_dashboards_of_different_titles_and_uids_that_grafana_accepts(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(ALL_ON)
    titles, uids = set(), set()
    releases = (
        RELEASE,
        RELEASE._replace(namespace="other"),
        RELEASE._replace(name="other"),
        RELEASE._replace(name="hub-a", namespace="b"),
        RELEASE._replace(name="hub", namespace="a-b"),
        RELEASE._replace(name="hub.a", namespace="b"),
        RELEASE._replace(name="h" * 40, namespace="n" * 40),
        RELEASE._replace(name="h" * 40, namespace="n" * 41),
    )
    for release in releases:
        (one,) = [one for one in roost_render([file], release).values() if "roost.json" in one.get("data", {})]
        rendered = json.loads(one["data"]["roost.json"])
        titles.add(rendered["title"])
        uids.add(rendered["uid"])
    assert len(titles) == len(uids) == len(releases)
    # What Grafana accepts; another uid, and it refuses the dashboard.
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", uid) for uid in uids), uids


def test_every_name_of_a_release_is_put_into_the_dashboard(dashboard: Object) -> None:
    assert not re.search(r"@\w+@", json.dumps(dashboard))


def test_a_record_in_postgresql_has_a_dashboard_of_its_own(tmp_path: Path, dashboard: Object) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(
        ALL_ON.replace("recorder: {enabled: true}", "recorder: {enabled: true, database: {existingSecret: db}}")
    )
    record = dashboard_of(list(roost_render([file]).values()), "roost-record.json")
    assert not re.search(r"@\w+@", json.dumps(record))
    assert record["uid"] != dashboard["uid"]
    assert record["title"] == "Roost's record: hub in jhub"
    file.write_text(ALL_ON)
    assert not any("roost-record.json" in one.get("data", {}) for one in roost_render([file]).values())


def test_the_page_on_monitoring_names_every_metric_with_its_labels(objects: Sequence[Object]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()
    rows = dict(re.findall(r"^\| `(roost_\w+)` \| \w+ \| ([^|]*) \|", page, re.MULTILINE))
    derived = re.compile(r"_(created|bucket|count|sum)$")
    known = {name: labels for name, labels in metrics_that_exist(objects).items() if name not in FOREIGN}
    known = {name: labels for name, labels in known.items() if name.startswith("roost_") and not derived.search(name)}
    # A counter goes by two names in the registry, and by the longer one everywhere else.
    known = {name: labels for name, labels in known.items() if f"{name}_total" not in known}
    assert {name: set(filter(None, labels.split(", "))) for name, labels in rows.items()} == known


def test_each_alert_leads_to_its_own_section_of_the_page_on_alerts(groups: list[Object]) -> None:
    page = Path(__file__).parents[2] / "docs" / "alerts.md"
    sections = re.findall(r"^### (Roost\w+)\n\n.+?\n\nWhat to do: ", page.read_text(), re.MULTILINE | re.DOTALL)
    assert sorted(sections) == sorted(rule["alert"] for rule in rules_of(groups))
    for rule in rules_of(groups):
        # GitHub, MkDocs and Sphinx make the same anchor of a heading of letters.
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"


def test_panels_that_the_page_on_alerts_names_exist(dashboard: Object) -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    named = set(re.findall(r"dashboard's \*([^*]+)\*", page))
    assert named
    assert named <= {panel["title"] for panel in dashboard["panels"]}


def test_runbooks_may_be_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(ALL_ON.replace("{enabled: true}", "{enabled: true, runbooks: 'https://wiki.example.org/x'}", 1))
    for one in roost_render([file]).values():
        for rule in rules_of(one["spec"]["groups"] if one["kind"] == "PrometheusRule" else ()):
            assert rule["annotations"]["runbook_url"] == f"https://wiki.example.org/x#{rule['alert'].lower()}"


# Prometheus reads and fires them


def promtool(*arguments: object) -> str:
    done = subprocess.run(
        [require_binary("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.e2e
def test_prometheus_reads_every_alert_and_every_query(groups: list[Object], dashboard: Object, tmp_path: Path) -> None:
    queries = [
        {"record": f"panel:{number}", "expr": concrete(query, dashboard)}
        for number, query in enumerate(queries_of(dashboard))
    ]
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": [*groups, {"name": "dashboard", "rules": queries}]}))
    said = promtool("check", "rules", rules)
    assert f"{len(queries) + len(list(rules_of(groups)))} rules found" in said


class Firing:
    """Time series, a moment, and the alerts that must fire then: label sets by name of the alert."""

    def __init__(
        self, series: Mapping[str, str], minutes: int, alerts: Mapping[str, Sequence[Mapping[str, str]]]
    ) -> None:
        self.series = series
        self.minutes = minutes
        self.alerts = alerts


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
        {
            **LEADS,
            controllers("evictions_total"): "0x10 0+7x100",
            controllers("eviction_budget_per_minute"): "5x120",
        },
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
                starts("start_phase_seconds_bucket", phase="whole", le=bound): f"0+{count}x120"
                for bound, count in (("30.0", 8), ("300.0", 8), ("600.0", 10), ("+Inf", 10))
            },
            starts("start_phase_seconds_count", phase="whole"): "0+10x120",
        },
        70,
        {"RoostStartsSlow": [USERS_OF_HUB]},
    ),
    "one start in twenty takes ten minutes, and a hub's only start": Firing(
        {
            **LEADS,
            **{
                starts("start_phase_seconds_bucket", phase="whole", le=bound): f"0+{count}x120"
                for bound, count in (("30.0", 19), ("300.0", 19), ("600.0", 20), ("+Inf", 20))
            },
            starts("start_phase_seconds_count", phase="whole"): "0+20x120",
            **{
                starts("start_phase_seconds_bucket", phase="whole", hub="lone", le=bound): f"0x60 {count}x60"
                for bound, count in (("300.0", 0), ("600.0", 1), ("+Inf", 1))
            },
            starts("start_phase_seconds_count", phase="whole", hub="lone"): "0x60 1x60",
        },
        70,
        NOBODY,
    ),
    "a third of the starts fail": Firing(
        {
            **LEADS,
            starts("starts_total", result="warm"): "0+2x120",
            starts("starts_total", result="cold"): "0x120",
            starts("starts_total", result="failed"): "0+1x120",
        },
        40,
        {"RoostStartsFail": [USERS_OF_HUB]},
    ),
    "a hundredth of the starts fail, and of a quiet hub's the only one": Firing(
        {
            **LEADS,
            starts("starts_total", result="warm"): "0+99x120",
            starts("starts_total", result="failed"): "0+1x120",
            starts("starts_total", result="failed", hub="quiet"): "0x20 1x100",
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
        {
            **LEADS,
            starts("starts_total", result="warm"): "0+2x400",
            starts("starts_total", result="cold"): "0+1x400",
        },
        100,
        NOBODY,
    ),
    "a user waits until the hub gives up": Firing(
        {**LEADS, starts("oldest_pending_seconds"): "0x9 0+60x4 280 0x100"}, 20, {"RoostPodsPending": [USERS_OF_HUB]}
    ),
    "a user waited, and users wait a little": Firing(
        {
            **LEADS,
            starts("oldest_pending_seconds"): "0x9 0+60x4 280 0x100",
            starts("oldest_pending_seconds", hub="other"): "0x9 0+60x4 0x100",
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


@pytest.mark.e2e
def test_alerts_fire_when_they_should_and_only_then(groups: list[Object], tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": groups}))
    severities = {rule["alert"]: rule["labels"] for rule in rules_of(groups)}
    # What an alert says isn't compared: promtool wants every annotation, so they are left out of the rules.
    bare = [{**group, "rules": [{**rule, "annotations": {}} for rule in group["rules"]]} for group in groups]
    rules.write_text(yaml.safe_dump({"groups": bare}))
    tests = []
    for name, firing in FIRINGS.items():
        assert firing.alerts.keys() <= severities.keys(), name
        checks = [
            {
                "eval_time": f"{firing.minutes}m",
                "alertname": alert,
                "exp_alerts": [{"exp_labels": {**severities[alert], **one}} for one in firing.alerts.get(alert, ())],
            }
            for alert in severities
        ]
        series = [{"series": one, "values": values} for one, values in firing.series.items()]
        tests.append({"name": name, "interval": "1m", "input_series": series, "alert_rule_test": checks})
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [rules.name], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", file)
    assert {alert for firing in FIRINGS.values() for alert in firing.alerts} == severities.keys(), (
        "an alert never fires"
    )


@pytest.mark.e2e
def test_what_alerts_say_is_a_sentence_that_prometheus_can_fill_in(groups: list[Object]) -> None:
    for rule in rules_of(groups):
        summary = rule["annotations"]["summary"]
        assert summary.endswith("."), summary
        named = set(re.findall(r"\$labels\.(\w+)", summary))
        kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))
        assert named <= kept, rule
