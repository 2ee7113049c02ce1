"""The chart's helpers beside their twins in Python: names, and images that are pulled."""

import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from generator.render.functions import (
    Chart,
    context,
    minor_for_tag,
    pulled_labels,
    pullers,
    to_json,
)
from generator.render.managed_images import profile_seats
from generator.values.release_name import Release
from roost_core.placement import labels
from tests.builders import HUB_RELEASE
from tests.parity.drawn_values import users
from tests.parity.renderers import CHART, by_identity, run_helm

# Helm renders so many draws at once.
DRAWS = 100
# ROOST_PARITY_EXAMPLES=5000 searches for an evening. A failure names its draw: nothing is shrunk.
DRAWN = settings(
    max_examples=max(3, int(os.environ.get("ROOST_PARITY_EXAMPLES", "200")) // DRAWS),
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
HELPERS = ("_helpers.tpl", "_names.tpl", "_images.tpl")


def printed(
    helm: Path, folder: Path, template: str, values: dict[str, object], release: Release
) -> Any:
    """What a template prints, which is JSON, in a chart that has these values and the helpers, and
    nothing else.
    """
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: helpers, version: 1.0.0}")
    (chart / "values.yaml").write_text(json.dumps(values))
    for name in HELPERS:
        shutil.copy(CHART / "templates" / name, chart / "templates" / name)
    map_with_it = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {template}}}"
    (chart / "templates" / "map.yaml").write_text(map_with_it)
    options = (f"--namespace={release.namespace}", f"--kube-version={release.kube_version}")
    (body,) = by_identity(run_helm(helm, "template", release.name, str(chart), *options)).values()
    return body["data"]


def calls_of(calls: Iterable[tuple[str, Sequence[object]]]) -> str:
    """A template that prints what helpers give, which take the chart's root, then strings and
    numbers.
    """
    parts = []
    for helper, arguments in calls:
        words = " ".join(["list", "$", *map(json.dumps, arguments)])
        parts.append(f'{{{{ include "roost.{helper}" ({words}) | toJson }}}}')
    return f"[{', '.join(parts)}]"


REFERENCES = [
    "nginx",
    "nginx:1.25",
    "jupyter/base-notebook",
    "jupyter/base-notebook:2024-01-01",
    "quay.io/jupyter/scipy:x_y.z",
    "localhost/a",
    "localhost:5000/a",
    "localhost:5000/a/b:c",
    "ghcr.io/o/r@sha256:" + "ab" * 32,
    "a:b@sha256:" + "0" * 64,
    "gcr.io/p/--weird__name--:v1",
    "r.io/" + "x" * 80 + ":" + "y" * 60,
    "a.b/c",
    "UPPER/Case:Tag",
    "r.io/...:_",
]
RELEASES = [
    ("hub", "jhub"),
    ("a.b.c", "jhub"),
    ("h" * 53, "n" * 63),
    ("hub." + "x" * 49, "default"),
    ("a-b-c", "n"),
    ("roost", "hub"),
    # 41 characters and 42 before the node's name.
    ("h" * 32, "hub"),
    ("h." * 16 + "h", "hub"),
]
COMPONENTS = [
    "webhook",
    "placeholder-default",
    "placeholder-" + "long-" * 10 + "x",
    "p-" + "a" * 61,
]


@pytest.mark.parametrize(
    "override", ["", "seats", "with.dots.and-a-" + "long" * 12], ids=["none", "short", "long"]
)
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release[0][:12])
def test_names_are_made_alike_on_both_sides(
    helm: Path, release: tuple[str, str], override: str, tmp_path: Path
) -> None:
    name, namespace = release
    values: dict[str, object] = {"fullnameOverride": override}
    known = context(values, Release(name, namespace), Chart("0", "0"))
    calls: list[tuple[str, tuple[object, ...]]] = [
        *(("object_name", (component,)) for component in COMPONENTS),
        *(("object_name", (component, 52)) for component in COMPONENTS),
        *(("cluster_object_name", (component,)) for component in COMPONENTS),
        *(("scheduler_name", (profile,)) for profile in ("user", "p" * 63)),
        *(("dashboard_uid", (kind,)) for kind in ("release", "record")),
        *(("attract_label", (placeholders,)) for placeholders in ("default", "s" * 64)),
        *(("pulled_label", (reference,)) for reference in REFERENCES),
        *(("puller_container", (reference,)) for reference in REFERENCES),
        *(
            (function, ())
            for function in ("startup_taint", "pulled_prefix", "attract_prefix", "popular_prefix")
        ),
    ]
    theirs = printed(helm, tmp_path, calls_of(calls), values, Release(name, namespace))
    for (function, arguments), their in zip(calls, theirs, strict=True):
        ours = known[function]
        assert callable(ours)
        assert their == ours(*arguments), (function, arguments)


@DRAWN
@given(texts=st.lists(st.text("aB0.:/@-_", max_size=70), min_size=DRAWS, max_size=DRAWS))
def test_whatever_is_written_as_an_image_has_the_same_names(
    helm: Path, tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    base = labels.base_name(HUB_RELEASE.name)
    calls: list[tuple[str, list[object]]] = []
    ours = []
    for text in texts:
        calls += [("pulled_label", [text]), ("puller_container", [text]), ("object_name", [text])]
        ours.append(labels.pulled_label(HUB_RELEASE.name, HUB_RELEASE.namespace, text))
        ours.append(labels.puller_container(text))
        ours.append(labels.object_name(base, text))
    folder = tmp_path_factory.mktemp("references")
    theirs = printed(helm, folder, calls_of(calls), {"fullnameOverride": ""}, HUB_RELEASE)
    assert theirs == ours


# What a draw's users have, of the values' list `drawn`.
OF_DRAWN_USERS = """[{{ range $.Values.drawn }}
{pullers: {{ include "roost.pullers" (list $ .singleuser .prePuller) }},
 labels: {{ include "roost.pulled_labels" (list $ .singleuser .prePuller) }},
 seats: {{ include "roost.profile_seats" (list $ .singleuser $.Values.defaults $.Values.sets) }}},
{{ end }}]"""


@DRAWN
@given(drawn=st.lists(users(), min_size=DRAWS, max_size=DRAWS))
def test_whatever_users_may_choose_has_the_same_pullers_labels_and_seats(
    helm: Path, tmp_path_factory: pytest.TempPathFactory, drawn: list[dict[str, Any]]
) -> None:
    of_any: dict[str, object] = {"nodeSelector": {}, "tolerations": [], "requiredNodeTerms": []}
    defaults = {**of_any, "nodeSelector": {"pool": "gpu"}}
    sets = [{"name": "default", **defaults}, {"name": "anywhere", **of_any}]
    values: dict[str, object] = {"drawn": drawn, "defaults": defaults, "sets": sets}
    values["fullnameOverride"] = ""
    theirs = printed(helm, tmp_path_factory.mktemp("users"), OF_DRAWN_USERS, values, HUB_RELEASE)
    base = labels.base_name(HUB_RELEASE.name)
    for one, their in zip(drawn, theirs, strict=True):
        singleuser, pre_puller = one["singleuser"], one["prePuller"]
        ours = {
            "pullers": pullers(base, singleuser, pre_puller),
            "labels": pulled_labels(
                HUB_RELEASE.name, HUB_RELEASE.namespace, singleuser, pre_puller
            ),
            "seats": profile_seats(singleuser, defaults, sets),
        }
        assert their == json.loads(to_json(ours)), one


TAGS = [
    "v1.34.4",
    "1.36",
    "v1.37.2@sha256:" + "0" * 64,
    "v0.34.4",
    "v1.31.9",
    "v1.99.0",
    "v1.07.1",
    "1.340",
    "2026.11",
    "0.3.1",
    "v2.34.1",
    "mine-1.34",
    "v1",
    "1.34x",
    "_1.34",
]
BY_MINOR: dict[str, object] = {"1.0": "", "1.32": "", "1.35": "", "1.36": ""}


@pytest.mark.parametrize("version", ["v1.33.0", "v1.35.2-rc.1", "v1.38.0"])
def test_a_tag_says_the_same_minor_on_both_sides(helm: Path, tmp_path: Path, version: str) -> None:
    release = Release(HUB_RELEASE.name, HUB_RELEASE.namespace, version)
    template = (
        "[{{ range $.Values.tags }}"
        '{{ include "roost.minor_for_tag" (list $ $.Values.byMinor .) | toJson }},'
        "{{ end }}]"
    )
    values: dict[str, object] = {"tags": TAGS, "byMinor": BY_MINOR}
    ours = [minor_for_tag(BY_MINOR, tag, release.kube_minor) for tag in TAGS]
    assert printed(helm, tmp_path, template, values, release) == ours
    assert ours[:4] == ["1.32", "1.36", "1.36", "1.32"]


def test_a_helper_that_the_chart_calls_is_written_there() -> None:
    texts = [path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file()]
    written = {name for text in texts for name in re.findall(r'define "([\w.]+)"', text)}
    named = {name for text in texts for name in re.findall(r'include "([\w.]+)"', text)}
    assert named == written
