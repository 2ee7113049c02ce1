"""Write templates/shared/grafana-dashboard.yaml.j2: the Grafana dashboard, one panel a question that operators ask.

.venv/bin/python -m tools.write_dashboard            write it (then `roost chart`)
.venv/bin/python -m tools.write_dashboard --check    exit 1 unless it is fresh
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "templates" / "shared" / "grafana-dashboard.yaml.j2"
WRITER = "python -m tools.write_dashboard"
COLUMNS: Final = 24
HEIGHT: Final = 8
WEBHOOK: Final = '{namespace="$namespace",service="$webhook"}'
CONTROLLERS: Final = '{namespace="$namespace",service="$controllers"}'
RECORDER: Final = '{namespace="$namespace",service="$recorder"}'
GAPS: Final = '{namespace="$namespace",service="$recorder",table="gap"}'
SCHEDULER: Final = '{namespace="$namespace",service="$scheduler"}'
SCHEDULING: Final = f"scheduler_scheduling_attempt_duration_seconds_bucket{SCHEDULER}"
ALL: Final = '{namespace="$namespace",service=~"$webhook|$controllers|$recorder"}'
RATE: Final = "[$__rate_interval]"
REVIEWS: Final = "review_duration_seconds_bucket"
PLANS: Final = "plan_duration_seconds_bucket"
RECORDER_WRITES: Final = "write_duration_seconds_bucket"


class Panel(NamedTuple):
    """One plot: its question, its unit in Grafana's words, and queries with the legend of their series."""

    title: str
    unit: str
    queries: Sequence[tuple[str, str]]


def _c(name: str) -> str:
    return f"roost_controllers_{name}{CONTROLLERS}"


def _w(name: str) -> str:
    return f"roost_webhook_{name}{WEBHOOK}"


def _r(name: str) -> str:
    return f"roost_recorder_{name}{RECORDER}"


ROWS: Final[Sequence[tuple[str, Sequence[Panel]]]] = (
    (
        "Placement",
        (
            Panel(
                "What became of new pods?",
                "ops",
                [(f"sum by (class, result) (rate({_w('reviews_total')}{RATE}))", "{{class}} {{result}}")],
            ),
            Panel(
                "How long does a review take?",
                "s",
                [
                    (f"histogram_quantile({share}, sum by (le) (rate({_w(REVIEWS)}{RATE})))", name)
                    for share, name in ((0.5, "half of them"), (0.99, "99 of 100"))
                ],
            ),
            Panel(
                "Which pods came through without being placed?",
                "short",
                [(f"max by (class) ({_w('unplaced_pods')})", "{{class}}")],
            ),
            Panel(
                "Who was let through to nodes without the image, and why?",
                "ops",
                [(f"sum by (class, reason) (rate({_w('gate_degradations_total')}{RATE}))", "{{class}}: {{reason}}")],
            ),
            Panel(
                "Is Roost's scheduler at work?",
                "s",
                [(f"min by (part) ({_w('lease_age_seconds')})", "since the {{part}} renewed its Lease")],
            ),
            Panel(
                "Which pods wait for a node, and which were left to the cluster's scheduler?",
                "short",
                [
                    (f"max by (class) ({_w('pods_waiting_for_scheduler')})", "{{class}} waits"),
                    (
                        f"sum by (class) (increase({_w('pods_left_to_cluster_scheduler_total')}[5m]))",
                        "{{class}} left in five minutes",
                    ),
                ],
            ),
            Panel(
                "How long does Roost's scheduler take?",
                "s",
                [
                    (
                        f"histogram_quantile(0.99, sum by (profile, le) (rate({SCHEDULING}{RATE})))",
                        "{{profile}}, 99 of 100",
                    )
                ],
            ),
            Panel("Where do builds live?", "short", [(f"max by (class) ({_w('ring_nodes')})", "nodes for {{class}}")]),
        ),
    ),
    (
        "Images",
        (
            Panel(
                "How many nodes wait for images?",
                "short",
                [
                    (f"max({_c('gate_nodes_waiting')})", "lack an image"),
                    (f"max({_c('gate_nodes_tainted')})", "carry the startup taint"),
                    (f"max({_c('gate_nodes_opened_without_images')})", "were opened without"),
                ],
            ),
            Panel("How long does the longest wait?", "s", [(f"max({_c('gate_oldest_wait_seconds')})", "longest wait")]),
            Panel(
                "Which images are missing?",
                "short",
                [(f"max by (image) ({_c('gate_images_missing')}) > 0", "{{image}}")],
            ),
            Panel(
                "Why can images not be pulled?",
                "short",
                [(f"max by (reason) ({_c('gate_pull_faults')})", "{{reason}}")],
            ),
            Panel(
                "What becomes of popular images?",
                "short",
                [
                    (f"max({_c('popular_images_held')})", "on nodes"),
                    (f"max({_c('popular_images_missing')})", "missing"),
                    (f"max({_c('popular_images_pulling')})", "being pulled"),
                    (f"max({_c('popular_images_backing_off')})", "failed, tried later"),
                ],
            ),
            Panel(
                "Which images are popular?",
                "short",
                [(f"topk(10, max by (image) ({_c('popular_image_users')}))", "{{image}}")],
            ),
        ),
    ),
    (
        "Placeholders",
        (
            Panel(
                "Where are the placeholders?",
                "short",
                [(f"max by (set, state) ({_c('placeholders')})", "{{set}} {{state}}")],
            ),
            Panel(
                "How fast do they move?",
                "short",
                [
                    (f"60 * sum(rate({_c('evictions_total')}[5m]))", "evictions a minute"),
                    (f"max({_c('eviction_budget_per_minute')})", "budget"),
                ],
            ),
            Panel(
                "Why do they stay?",
                "short",
                [(f"max by (set, reason) ({_c('placeholder_moves_held')})", "{{set}}: {{reason}}")],
            ),
            Panel(
                "How old is the node that draws them?",
                "s",
                [(f"max by (set) ({_c('placeholder_marked_node_age_seconds')})", "{{set}}")],
            ),
        ),
    ),
    (
        "The record",
        (
            Panel(
                "Is everything recorded?",
                "short",
                [(f"max({_r('recording')})", "recording"), (f"max({_r('database_failing')})", "database fails")],
            ),
            Panel("How far behind is the record?", "s", [(f"max({_r('behind_seconds')})", "oldest that waits")]),
            Panel("What is recorded?", "ops", [(f"sum by (table) (rate({_r('rows_total')}{RATE}))", "{{table}}")]),
            Panel(
                "How long does a write to the record take?",
                "s",
                [
                    (f"histogram_quantile({share}, sum by (le) (rate({_r(RECORDER_WRITES)}{RATE})))", name)
                    for share, name in ((0.5, "half of them"), (0.99, "99 of 100"))
                ],
            ),
            Panel(
                "What does the record lack?",
                "short",
                [
                    # Plain counts: the first gap is marked at a start, before anybody scrapes.
                    (f"sum(roost_recorder_rows_total{GAPS})", "gaps since its start"),
                    (f"sum by (kind) ({_r('odd_objects_total')})", "{{kind}} left out since its start"),
                ],
            ),
            Panel(
                "What holds the recorder up?",
                "ops",
                [
                    (f"sum(rate({_r('waits_total')}{RATE}))", "streams that wait for the database"),
                    (f"sum by (kind) (rate({_r('stream_errors_total')}{RATE}))", "broken watch of {{kind}}"),
                    (f"sum(rate({_r('store_errors_total')}{RATE}))", "faults of the database"),
                ],
            ),
        ),
    ),
    (
        "Roost itself",
        (
            Panel(
                "Does somebody lead?",
                "short",
                [(f"sum({_c('leader')})", "leaders"), (f"count({_c('leader')})", "replicas")],
            ),
            Panel(
                "How long does planning take?",
                "s",
                [(f"histogram_quantile(0.99, sum by (controller, le) (rate({_c(PLANS)}{RATE})))", "{{controller}}")],
            ),
            Panel(
                "What is done?",
                "ops",
                [(f"sum by (kind, outcome) (rate({_c('actions_total')}{RATE}))", "{{kind}} {{outcome}}")],
            ),
            Panel(
                "What fails?",
                "ops",
                [
                    (f"sum by (controller) (rate({_c('plan_failures_total')}{RATE}))", "plans of {{controller}}"),
                    (f"sum by (kind) (rate({_c('watch_errors_total')}{RATE}))", "controllers' watch of {{kind}}"),
                    (f"sum by (kind) (rate({_w('watch_errors_total')}{RATE}))", "webhook's watch of {{kind}}"),
                    (f"sum(rate({_w('policy_reload_failures_total')}{RATE}))", "policies refused"),
                ],
            ),
            Panel(
                "How much is asked of the API server?",
                "ops",
                [(f"sum by (verb) (rate({_c('api_requests_total')}{RATE}))", "{{verb}}")],
            ),
            Panel(
                "When do certificates end?",
                "s",
                [(f"min by (kind) ({_w('certificate_expiry_timestamp_seconds')}) - time()", "{{kind}}")],
            ),
            Panel("How much memory is used?", "bytes", [(f"process_resident_memory_bytes{ALL}", "{{pod}}")]),
            Panel(
                "How much processor time is used?",
                "percentunit",
                [(f"rate(process_cpu_seconds_total{ALL}{RATE})", "{{pod}}")],
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana has it; what differs between releases is a Jinja2 expression in angle brackets."""
    source = {"type": "prometheus", "uid": "$datasource"}
    panels: list[dict[str, Any]] = []
    top = 0
    for name, row in ROWS:
        place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
        panels.append(
            {"type": "row", "id": len(panels) + 1, "title": name, "collapsed": False, "gridPos": place, "panels": []}
        )
        top += 1
        width = COLUMNS // 3
        for index, panel in enumerate(row):
            place = {"x": index % 3 * width, "y": top + index // 3 * HEIGHT, "w": width, "h": HEIGHT}
            targets = [
                {"refId": chr(ord("A") + number), "datasource": source, "expr": query, "legendFormat": legend}
                for number, (query, legend) in enumerate(panel.queries)
            ]
            panels.append(
                {
                    "type": "timeseries",
                    "id": len(panels) + 1,
                    "title": panel.title,
                    "datasource": source,
                    "gridPos": place,
                    "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                    "options": {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list", "placement": "bottom"}},
                    "targets": targets,
                }
            )
        top += -(-len(row) // 3) * HEIGHT
    variables: list[dict[str, Any]] = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    ]
    for name, value in (
        ("namespace", "<<release.namespace>>"),
        ("webhook", '<<object_name("webhook")>>'),
        ("controllers", '<<object_name("controllers")>>'),
        ("recorder", '<<object_name("recorder")>>'),
        ("scheduler", '<<object_name("scheduler")>>'),
    ):
        variables.append({"name": name, "type": "constant", "query": value, "hide": 2})
    return {
        "title": '<<"Roost: " ~ release.name ~ " in " ~ release.namespace>>',
        "tags": ["roost"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": variables},
        "panels": panels,
    }


_LABELS = {
    "app.kubernetes.io/name": '"roost"',
    "app.kubernetes.io/instance": "release.name",
    "app.kubernetes.io/component": '"dashboard"',
    "app.kubernetes.io/managed-by": '"roost"',
    "app.kubernetes.io/part-of": '"roost"',
}
_OWN_LABELS = ", ".join(f'"{key}": {value}' for key, value in _LABELS.items())
_HEAD = f"""{{# Written by `{WRITER}`: edit tools/write_dashboard.py. #}}
{{% if values.enabled and values.monitoring.grafanaDashboard.enabled %}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{{{ object_name("dashboard") | to_json }}}}
  namespace: {{{{ release.namespace | to_json }}}}
{{% if values.commonAnnotations %}}
  annotations: {{{{ values.commonAnnotations | to_json }}}}
{{% endif %}}
  labels: {{{{ merge(values.commonLabels, {{{_OWN_LABELS}}}, values.monitoring.grafanaDashboard.labels) | to_json }}}}
data:
  roost.json: |
"""


def template() -> str:
    """The template's text."""
    lines = "".join(f"    {_as_template(line)}\n" for line in json.dumps(dashboard(), indent=1).splitlines())
    return f"{_HEAD}{lines}{{% endif %}}\n"


def _as_template(line: str) -> str:
    # A legend's own braces mean something to both template languages: it is printed as a text.
    legend = re.fullmatch(r'(\s*"legendFormat": )("[^"]*\{\{.*")(,?)', line)
    if legend:
        return f"{legend[1]}{{{{ {legend[2]} | to_json }}}}{legend[3]}"
    given = re.fullmatch(r'(\s*"\w+": )"<<(.*)>>"(,?)', line)
    if given:
        expression = json.loads(f'"{given[2]}"')
        return f"{given[1]}{{{{ ({expression}) | to_json }}}}{given[3]}"
    return line


def main(arguments: Sequence[str]) -> int:
    """Write, or check."""
    text = template()
    if "--check" in arguments:
        if TEMPLATE.exists() and TEMPLATE.read_text() == text:
            return 0
        print(f"{TEMPLATE.relative_to(ROOT)} isn't what tools/write_dashboard.py gives; run {WRITER}", file=sys.stderr)
        return 1
    TEMPLATE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
