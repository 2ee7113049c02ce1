"""What is rendered for Prometheus and Grafana with everything on, and which metrics there are."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from roost.controllers.controllers_settings import parse_settings
from roost.controllers.registry import CONTROLLERS
from roost.controllers.runtime.metrics import ControllersMetrics
from roost.seating.hub import Result
from roost.seating.metrics import SeatingMetrics
from roost_core.objects.fields import JSONObject
from roost_lab.recorder.recording.metrics import RecorderMetrics
from tests.parity.renderers import roost_render
from webhook.metrics import WebhookMetrics

ALL_ON = """
monitoring: {prometheusRule: {enabled: true}, grafanaDashboard: {enabled: true}}
seating: {enabled: true}
events: {enabled: true}
imageGate: {mode: startupTaint}
popularImages: {enabled: true}
recorder: {enabled: true}
placeholders:
  - name: default
    replicas: 3
    windows: [{name: day, replicas: 9, timeZone: UTC, start: 0 8 * * *, end: 0 18 * * *}]
"""
# Put on every series by the Prometheus operator.
SCRAPED_LABELS = {"namespace", "service", "pod", "job", "instance"}
# Metrics of the API server, of kube-state-metrics, of kube-scheduler, and of the Python client
# library's own collectors.
FOREIGN = {
    "apiserver_admission_webhook_fail_open_count": {"name", "type"},
    "apiserver_admission_webhook_admission_duration_seconds_count": {"name", "type", "rejected"},
    "kube_deployment_status_condition": {"deployment", "condition", "status"},
    "kube_deployment_spec_replicas": {"deployment"},
    "kube_pod_container_info": {"pod", "container", "image_spec"},
    "kube_pod_container_status_running": {"pod", "container"},
    "scheduler_scheduling_attempt_duration_seconds_bucket": {"profile", "result", "le"},
    "process_resident_memory_bytes": set[str](),
    "process_cpu_seconds_total": set[str](),
}


def render_all(folder: Path) -> Sequence[JSONObject]:
    file = folder / "values.yaml"
    file.write_text(ALL_ON)
    return list(roost_render([file]).values())


def groups_of(objects: Sequence[JSONObject]) -> list[JSONObject]:
    return [
        group
        for one in objects
        if one["kind"] == "PrometheusRule"
        for group in one["spec"]["groups"]
    ]


def dashboard_of(objects: Sequence[JSONObject], name: str = "roost.json") -> JSONObject:
    (text,) = [one["data"][name] for one in objects if name in one.get("data", {})]
    found: JSONObject = json.loads(text)
    return found


def rules_of(groups: Sequence[JSONObject]) -> Iterator[JSONObject]:
    return (rule for group in groups for rule in group["rules"])


def queries_of(dashboard: JSONObject) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


def concrete(query: str, dashboard: JSONObject) -> str:
    """A query with the dashboard's variables put in, as Grafana does."""
    variables = dashboard["templating"]["list"]
    values = {
        variable["name"]: variable["allValue"] if variable["type"] == "query" else variable["query"]
        for variable in variables
    }
    query = query.replace("$__rate_interval", "5m")
    return re.sub(r"\$(\w+)", lambda name: str(values[name[1]]), query)


def metrics_that_exist(objects: Sequence[JSONObject]) -> dict[str, set[str]]:
    """Names as Prometheus stores them, with their labels, from the programs' own registries."""
    data = {
        key: text
        for one in objects
        if one["kind"] == "ConfigMap"
        for key, text in one["data"].items()
    }
    settings = parse_settings(
        json.loads(data["release.json"]), yaml.safe_load(data["config.yaml"]), 36
    )
    assert len(settings.planners) == len(CONTROLLERS), "the values leave a controller out"
    gauges = [gauge for planner in settings.planners for gauge in planner.gauges]
    found: dict[str, set[str]] = dict(FOREIGN)
    programs = (
        WebhookMetrics("test"),
        ControllersMetrics("test", gauges),
        RecorderMetrics("test"),
        SeatingMetrics(Result),
    )
    for registry in (program.registry for program in programs):
        # Its own book: what it collects shows no labels of metrics that have no samples yet.
        for collector, names in registry._collector_to_names.items():
            labels = set(getattr(collector, "_labelnames", ()))
            for name in names:
                found[name] = labels | ({"le"} if name.endswith("_bucket") else set())
    return found | {f"roost_controllers_{gauge.name}": set(gauge.labels) for gauge in gauges}
