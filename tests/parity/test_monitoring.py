"""Alerts and dashboard as rendered: Prometheus' own parser reads them, its engine fires them, every
metric exists.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from roost_core.objects.fields import JSONObject
from tests.builders import HUB_RELEASE
from tests.harness.fixtures import require_binary
from tests.parity.firings import FIRINGS, OWN_ENTRY
from tests.parity.monitored import (
    ALL_ON,
    SCRAPED_LABELS,
    dashboard_of,
    groups_of,
    metrics_that_exist,
    queries_of,
    rules_of,
)
from tests.parity.renderers import roost_render
from tools.root import ROOT


@pytest.fixture(scope="module")
def groups(objects: Sequence[JSONObject]) -> list[JSONObject]:
    return groups_of(objects)


# Every metric exists


def faults_of(query: str, known: Mapping[str, set[str]]) -> list[str]:
    """Metrics and labels of a query that nobody has."""
    bare = re.sub(r'"[^"]*"', '""', query)
    names = set(re.findall(r"\b((?:roost|apiserver|kube|process|scheduler)_\w+)", bare))
    unknown = [f"metric {name}" for name in sorted(names - known.keys())]
    labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", bare))
    for grouping in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", bare):
        labels |= {label.strip() for label in grouping.split(",") if label.strip()}
    there = SCRAPED_LABELS.union(*(known.get(name, set()) for name in names))
    return (
        unknown
        + [f"label {label}" for label in sorted(labels - there)]
        + ([] if names else ["no metric at all"])
    )


def test_every_metric_and_label_of_alerts_and_dashboard_exists(
    objects: Sequence[JSONObject], groups: list[JSONObject], dashboard: JSONObject
) -> None:
    known = metrics_that_exist(objects)
    queries = [*(rule["expr"] for rule in rules_of(groups)), *queries_of(dashboard)]
    faults = {query: found for query in queries if (found := faults_of(query, known))}
    assert faults == {}
    expected = ["metric roost_webhook_review_total", "label clas", "label classs"]
    assert faults_of('sum by (clas) (roost_webhook_review_total{classs=""})', known) == expected


def test_legends_name_labels_that_their_queries_keep(dashboard: JSONObject) -> None:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            kept = (
                set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
                or SCRAPED_LABELS
            )
            kept -= {"le"}
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, target


def test_entries_of_the_webhook_are_named_as_the_alert_selects_them(
    objects: Sequence[JSONObject], groups: list[JSONObject]
) -> None:
    (names,) = [
        [entry["name"] for entry in one["webhooks"]]
        for one in objects
        if one["kind"] == "MutatingWebhookConfiguration"
    ]
    (expression,) = [
        rule["expr"] for rule in rules_of(groups) if rule["alert"] == "RoostAdmissionFailedOpen"
    ]
    (selected,) = set(re.findall(r'name=~"([^"]*)"', expression))
    assert OWN_ENTRY in names
    assert all(re.fullmatch(selected, name) for name in names)


def test_two_releases_have_dashboards_of_different_titles_and_uids_that_grafana_accepts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(ALL_ON)
    hubs = [
        ("hub", "jhub"),
        ("hub", "other"),
        ("other", "jhub"),
        ("hub-a", "b"),
        ("hub", "a-b"),
        ("hub.a", "b"),
    ]
    hubs += [("h" * 40, "n" * length) for length in (40, 41)]
    shown = [
        dashboard_of(
            list(
                roost_render([file], HUB_RELEASE._replace(name=name, namespace=namespace)).values()
            )
        )
        for name, namespace in hubs
    ]
    assert len({one["title"] for one in shown}) == len({one["uid"] for one in shown}) == len(hubs)
    # What Grafana accepts; another uid, and it refuses the dashboard.
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", one["uid"]) for one in shown)


def test_a_record_in_postgresql_has_a_dashboard_of_its_own(
    tmp_path: Path, dashboard: JSONObject
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(
        ALL_ON.replace(
            "recorder: {enabled: true}", "recorder: {enabled: true, database: {existingSecret: db}}"
        )
    )
    record = dashboard_of(list(roost_render([file]).values()), "roost-record.json")
    # Every name of the release is put in.
    assert not re.search(r"@\w+@", json.dumps([record, dashboard]))
    assert record["uid"] != dashboard["uid"]
    assert record["title"] == "Roost's record: hub in jhub"
    file.write_text(ALL_ON)
    assert not any(
        "roost-record.json" in one.get("data", {}) for one in roost_render([file]).values()
    )


def test_each_alert_leads_to_its_own_section_of_the_page_on_alerts(
    groups: list[JSONObject],
) -> None:
    page = ROOT / "docs" / "alerts.md"
    sections = re.findall(
        r"^### (Roost\w+)\n\n[^#]+?\n\n```console\n\$ .+?\n```\n\nWhat to do: ",
        page.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert sorted(sections) == sorted(rule["alert"] for rule in rules_of(groups))
    for rule in rules_of(groups):
        # GitHub, MkDocs and Sphinx make the same anchor of a heading of letters.
        assert rule["annotations"].keys() == {"summary"}, "docs/alerts.md is no address"


def test_critical_is_what_users_feel_as_the_page_says(groups: list[JSONObject]) -> None:
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    (felt,) = re.findall(r"Severity `critical` is what users feel: (.*?)\.", page)
    severities = {rule["alert"]: rule["labels"]["severity"] for rule in rules_of(groups)}
    assert {alert for alert, severity in severities.items() if severity == "critical"} == set(
        re.findall(r"\w+", felt)
    )
    assert set(severities.values()) == {"critical", "warning"}


def test_runbooks_may_be_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    elsewhere = "{enabled: true, runbooks: 'https://wiki.example.org/x'}"
    file.write_text(ALL_ON.replace("{enabled: true}", elsewhere, 1))
    rules = [
        rule for group in groups_of(list(roost_render([file]).values())) for rule in group["rules"]
    ]
    for rule in rules:
        assert (
            rule["annotations"]["runbook_url"]
            == f"https://wiki.example.org/x#{rule['alert'].lower()}"
        )


def test_alerts_of_what_users_feel_need_no_recorder(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("monitoring: {prometheusRule: {enabled: true}}")
    rules = list(rules_of(groups_of(list(roost_render([file]).values()))))
    critical = {rule["alert"] for rule in rules if rule["labels"]["severity"] == "critical"}
    assert critical == {
        "RoostPodsPending",
        "RoostPodsWaitForScheduler",
        "RoostStartsFail",
        "RoostStartsSlow",
        "RoostVolumesFail",
    }


# Names are cut at 63 characters and get a hash.
NAMES = ("hub", "jupyterhub", "roost-production", "h" * 53)


def rendered_as(name: str, folder: Path) -> list[JSONObject]:
    file = folder / "values.yaml"
    file.write_text(ALL_ON)
    return list(roost_render([file], HUB_RELEASE._replace(name=name)).values())


@pytest.mark.parametrize("name", NAMES)
def test_a_stuck_rollout_is_seen_whatever_the_releases_name(name: str, tmp_path: Path) -> None:
    objects = rendered_as(name, tmp_path)
    (stuck,) = (
        rule["expr"]
        for rule in rules_of(groups_of(objects))
        if rule["alert"] == "RoostRolloutStuck"
    )
    (selected,) = re.findall(r'deployment=~"([^"]*)"', stuck)
    deployments = [found["metadata"]["name"] for found in objects if found["kind"] == "Deployment"]
    assert deployments
    assert all(re.fullmatch(selected, deployment) for deployment in deployments)


# Prometheus reads and fires them


def promtool(*arguments: object) -> str:
    done = subprocess.run(
        [require_binary("promtool"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.e2e
@pytest.mark.parametrize("name", NAMES)
def test_prometheus_reads_the_rules_of_any_release(name: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": groups_of(rendered_as(name, tmp_path))}))
    promtool("check", "rules", rules)


@pytest.mark.e2e
def test_alerts_fire_when_they_should_and_only_then(
    groups: list[JSONObject], tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    severities = {rule["alert"]: rule["labels"] for rule in rules_of(groups)}
    # What an alert says isn't compared: promtool wants every annotation, so they are left out of
    # the rules.
    bare = [
        {**group, "rules": [{**rule, "annotations": {}} for rule in group["rules"]]}
        for group in groups
    ]
    rules.write_text(yaml.safe_dump({"groups": bare}))
    tests = []
    for name, firing in FIRINGS.items():
        assert firing.alerts.keys() <= severities.keys(), name
        checks = [
            {
                "eval_time": f"{firing.minutes}m",
                "alertname": alert,
                "exp_alerts": [
                    {"exp_labels": {**severities[alert], **one}}
                    for one in firing.alerts.get(alert, ())
                ],
            }
            for alert in severities
        ]
        series = [{"series": one, "values": values} for one, values in firing.series.items()]
        tests.append(
            {"name": name, "interval": "1m", "input_series": series, "alert_rule_test": checks}
        )
    file = tmp_path / "tests.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [rules.name], "evaluation_interval": "1m", "tests": tests})
    )
    promtool("test", "rules", file)
    assert {alert for firing in FIRINGS.values() for alert in firing.alerts} == severities.keys(), (
        "an alert never fires"
    )
