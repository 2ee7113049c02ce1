"""A real Prometheus scrapes every metric that there is: no panel stays empty, and every alert is
evaluated.
"""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from roost_core.objects.fields import JSONObject
from tests.harness.fixtures import require_binary
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import RunFolder
from tests.harness.waiting import wait_until
from tests.parity.monitored import (
    SCRAPED_LABELS,
    concrete,
    groups_of,
    metrics_that_exist,
    queries_of,
    rules_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


pytestmark = pytest.mark.e2e
SCRAPES = 4
# Components by the beginning of a metric's name.
COMPONENTS = {
    "roost_webhook_": "webhook",
    "roost_build_info": "webhook",
    "roost_controllers_": "controllers",
    "roost_seating_": "seating",
    "scheduler_": "scheduler",
    "kube_": "kube-state-metrics",
    "apiserver_": "apiserver",
}


def component_of(metric: str) -> str:
    return next(
        (name for start, name in COMPONENTS.items() if metric.startswith(start)), "recorder"
    )


def label_values(queries: Sequence[str]) -> Mapping[str, set[str]]:
    values: dict[str, set[str]] = defaultdict(lambda: {"some"})
    for query in queries:
        for label, operator, text in re.findall(r"(\w+)\s*(=~|!=|=)\s*\"([^\"]*)\"", query):
            if operator != "!=" and ".*" not in text and "[" not in text:
                values[label] |= set(text.split("|"))
    values["le"] = {"1.0", "+Inf"}
    values["name"] = {"user.hub.jhub.roost.hub.jupyter.org"}
    return values


def exposed(
    component: str, known: Mapping[str, set[str]], queries: Sequence[str], scrape: int
) -> str:
    """All metrics of a component in Prometheus' text format; every value grows with each scrape."""
    values = label_values(queries)
    lines = []
    for metric, labels in known.items():
        if component_of(metric) != component and not metric.startswith("process_"):
            continue
        combinations = [""]
        for label in sorted(labels):
            combinations = [
                f'{before}{label}="{value}",'
                for before in combinations
                for value in sorted(values[label])
            ]
        lines += [f"{metric}{{{labels_text}}} {scrape}" for labels_text in combinations]
    return "\n".join(lines) + "\n"


class Prometheus:
    def __init__(self, port: int, dashboard: JSONObject) -> None:
        self._url = f"http://{LOOPBACK}:{port}/api/v1/"
        self._dashboard = dashboard

    def get(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(
            f"{self._url}{path}?{urllib.parse.urlencode(query)}", timeout=30
        ) as answer:
            return json.load(answer)["data"]

    def query(self, text: str) -> list[Any]:
        found: list[Any] = self.get("query", query=concrete(text, self._dashboard))["result"]
        return found

    def has_scraped(self) -> bool:
        try:
            found = self.query("count_over_time(up[1h])")
        except OSError:
            return False
        return len(found) == len({*COMPONENTS.values()}) + 1 and all(
            int(one["value"][1]) >= SCRAPES for one in found
        )


@pytest.fixture(scope="module")
def prometheus(
    objects: Sequence[JSONObject], dashboard: JSONObject, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    program = require_binary("prometheus")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    groups, known = groups_of(objects), metrics_that_exist(objects)
    queries = [
        *(concrete(query, dashboard) for query in queries_of(dashboard)),
        *(rule["expr"] for rule in rules_of(groups)),
    ]
    scrapes: defaultdict[str, int] = defaultdict(int)

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            component = self.path.strip("/")
            scrapes[component] += 1
            body = exposed(component, known, queries, scrapes[component]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    with ThreadingHTTPServer((LOOPBACK, 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"{LOOPBACK}:{server.server_address[1]}"
        jobs = [
            {
                "job_name": one,
                "metrics_path": f"/{one}",
                "static_configs": [{"targets": [address], "labels": labels}],
            }
            for one in (*sorted({*COMPONENTS.values()}), "recorder")
            for labels in [{"namespace": "jhub", "service": f"hub-roost-{one}", "pod": f"{one}-1"}]
        ]
        configuration = {
            "global": {
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "evaluation_interval": "1s",
            },
            "rule_files": ["rules.yaml"],
            "scrape_configs": jobs,
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        run = RunFolder()
        try:
            port = ReservedPort().release()
            flags = [
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
            ]
            process = run.start(
                "prometheus", program, [*flags, f"--web.listen-address={LOOPBACK}:{port}"]
            )
            started = Prometheus(port, dashboard)
            wait_until(
                started.has_scraped, 120, "Prometheus to scrape everything", explain=process.tail
            )
            yield started
        finally:
            run.close()
            server.shutdown()


def test_no_panel_stays_empty(prometheus: Prometheus, dashboard: JSONObject) -> None:
    empty = [query for query in queries_of(dashboard) if not prometheus.query(query)]
    assert empty == []
    assert prometheus.query("roost_starts_total{hub='nobody'}") == []
    # Labels of series are those that the operator adds.
    (recording,) = prometheus.query("roost_recorder_recording")
    assert set(recording["metric"]) >= SCRAPED_LABELS


def test_the_dashboards_choice_lists_hubs(prometheus: Prometheus, dashboard: JSONObject) -> None:
    (variable,) = [one for one in dashboard["templating"]["list"] if one["type"] == "query"]
    matched = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
    assert matched is not None
    assert prometheus.get(
        f"label/{matched[2]}/values", **{"match[]": concrete(matched[1], dashboard)}
    ) == ["some"]


def test_every_alert_is_evaluated(prometheus: Prometheus, objects: Sequence[JSONObject]) -> None:
    def healths() -> dict[str, str]:
        return {
            rule["name"]: rule["health"]
            for group in prometheus.get("rules")["groups"]
            for rule in group["rules"]
        }

    wait_until(lambda: "unknown" not in healths().values(), 60, "each alert to be evaluated")
    assert healths() == {rule["alert"]: "ok" for rule in rules_of(groups_of(objects))}
