"""`helm template` and `roost render` give the same objects for the same values."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.faults import ValuesError
from generator.loader import load
from generator.release import Release
from tests.harness.fixtures import require_binary
from tests.parity.drawn_values import overrides
from tests.parity.renderers import CHART, RELEASE, assert_same, differences, helm_template, roost_render

# One example costs about 0.1 s, nearly all of it Helm's. ROOST_PARITY_EXAMPLES=5000 searches for an evening.
EXAMPLES = int(os.environ.get("ROOST_PARITY_EXAMPLES", "200"))
DEFAULTS = load((CHART / "values.yaml").read_bytes(), "chart/values.yaml")


@pytest.fixture(scope="session")
def helm() -> Path:
    return require_binary("helm")


@pytest.fixture(scope="session")
def helm3() -> Path:
    return require_binary("helm3")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn")


ODD_VALUES: dict[str, str] = {
    "defaults": "",
    "a release that may only use its own namespace": "clusterResources: false",
    "rights given by somebody else": "rbac: {create: false}",
    "nothing at all": "enabled: false",
    "no scheduler": "scheduler: {target: none}",
    "no admission": "admission: {mode: none}",
    "admission by policy": "admission: {mode: policy}",
    "a name of its own, like a boolean": 'fullnameOverride: "on"',
    "pull secrets and common metadata": """
imagePullSecrets: [one, two]
commonLabels: {a: "1e3", b: "null", app: "yes", c: ""}
commonAnnotations: {note: "line one\\nline two <&> \\u2028 é 🙂 {{ x }} \\"q\\" 'single'", empty: ""}
""",
    "an image by digest": f"image: {{digest: 'sha256:{'ab' * 32}'}}",
    "plain scalars that YAML 1.1 reads in its own way": """
commonAnnotations: {a: "on", b: "012", c: "1_000", d: "12:30:00"}
singleuser: {profileList: [{a: on, b: 012, c: 1_000, d: 12:30:00, e: 2026-01-01, f: 1e3, g: 0o17, h: ~, i: .5, j: y}]}
""",
    "numbers that Go prints in its own way": """
singleuser:
  profileList: [{a: [1000000, 2500000, 12345678901, 9007199254740993, 1e20, 1e21, 1.5e300, 1e-7, 0.000001, 0.1, -3.0, 5.]}]
placeholders: [{name: a, replicas: 1.0, resources: {requests: {cpu: 0.0000005, memory: 12345678901234567890}}}]
""",
    "keys that are no strings": "singleuser: {profileList: [{1: a, 1.5: c, true: b, null-ish: d}]}",
    "several sets, long names, terms": """
placeholders:
  - {name: a, replicas: 0, labels: {component: mine}, annotations: {x: "y"}, nodeSelector: {pool: "1"}, tolerations: []}
  - name: averyverylongnamethatgoesonandonandonandonandonandon-andonandon
    replicas: 2
    requiredNodeTerms: [{matchExpressions: [{key: a, operator: In, values: ["1"]}]}, {matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}]
""",
    "no placeholders": "placeholders: []",
    "a null takes a default away": "{podClasses: {build: null, user: {join: null, preferredNodeTerms: null}}, scheduler: {strategies: {spread: null}}}",
    "classes in other namespaces": """
podClasses:
  dask: {match: {labels: {x: "y"}, namespaceSelector: {}}, join: {user: 5}}
  other: {match: {labels: {x: z}, namespaceSelector: {matchLabels: {hub: a}, matchExpressions: [{key: b, operator: Exists}]}}, profile: user, attract: true}
  placeholder: {join: {dask: 3, other: 2}}
""",
    "raw scheduler plugins": """
scheduler:
  profiles:
    raw:
      plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 7}]}}
      pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
    half: {strategy: packTo, plugins: {score: {disabled: [{name: "*"}]}}}
""",
    "scheduler set in every way": """
scheduler:
  {replicas: 1, logLevel: 10, percentageOfNodesToScore: 5, image: {tag: v1.36.1}, nodeSelector: {a: "b"}, tolerations: [],
   affinity: {nodeAffinity: {}}, labels: {x: "y"}, annotations: {a: b}, priorityClassName: high, pdb: {enabled: false},
   resources: {limits: {cpu: 2, memory: 1Gi}}, leaderElection: {leaseDuration: 1m0s}}
""",
    "certificates by cert-manager, its own issuer": "webhook: {certificates: {mode: certManager}}",
    "certificates by cert-manager, a given issuer": "webhook: {certificates: {mode: certManager, secretName: tls, issuerRef: {name: ca, kind: ClusterIssuer}}}",
    "given certificates": "webhook: {certificates: {mode: secret, secretName: tls, caBundle: Q0E=}}",
    "webhook set in every way": """
webhook:
  {replicas: 3, logLevel: Debug, failurePolicy: Fail, timeoutSeconds: 5, port: 9443, metricsPort: 9090, hostNetwork: true,
   url: "https://10.0.0.1:8443/mutate", drainSeconds: 30, extraEnv: [{name: A, value: "1"}], labels: {app: "no"}, readNodes: false,
   annotations: {a: "true"}, priorityClassName: high, pdb: {maxUnavailable: "50%"}, nodeSelector: {a: b}, affinity: {podAffinity: {}}}
networkPolicy: {enabled: false}
""",
    "monitoring": "monitoring: {serviceMonitor: {enabled: true, labels: {release: prom}}, prometheusRule: {enabled: true, labels: {a: b}}}",
    "no priorities": "priorityClasses: {enabled: false}",
    "priorities that differ": "priorityClasses: {user: 1000000, globalDefault: true, placeholder: -5}",
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_helm_and_roost_render_the_same_objects(odd: str, helm: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(ODD_VALUES[odd])
    assert_same(roost_render([file]), helm_template(helm, [file]))


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_helm_3_renders_the_same_objects_too(odd: str, helm3: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(ODD_VALUES[odd])
    assert_same(roost_render([file]), helm_template(helm3, [file]))


def test_later_files_win_on_both_sides(helm: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("{scheduler: {replicas: 5, tolerations: []}, podClasses: {user: {join: {build: 3}}}}")
    second.write_text("{scheduler: {replicas: 1}, podClasses: {user: {join: {user: null}}}, placeholders: []}")
    assert_same(roost_render([first, second]), helm_template(helm, [first, second]))


@pytest.mark.parametrize(
    "release",
    [
        Release("a", "default", "v1.32.0"),
        Release("hub.with.dots", "jhub", "v1.34.1"),
        Release("a-release-name-as-long-as-helm-lets-it-be-xxxxxxxxxxx", "n" * 63, "v1.35.0-gke.1"),
        Release("on", "1e3", "v1.99.0"),
    ],
    ids=lambda release: release.name,
)
def test_names_agree_for_every_release(release: Release, helm: Path) -> None:
    assert_same(roost_render([], release), helm_template(helm, [], release))


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(
    values=overrides(DEFAULTS),
    mode=st.sampled_from(["webhook", "policy", "none", None]),
    minor=st.sampled_from(["v1.33.4", "v1.35.0", "v1.36.3", "v1.38.0"]),
)
def test_whatever_the_schema_allows_renders_the_same(
    values: dict[str, object], mode: str | None, minor: str, helm: Path, folder: Path
) -> None:
    if mode is not None:
        values = {**values, "admission": {"mode": mode}}
    file = folder / "drawn.yaml"
    file.write_text(json.dumps(values))
    release = Release(RELEASE.name, RELEASE.namespace, minor)
    try:
        ours = roost_render([file], release)
    except ValuesError:
        # Bent references and merged halves may still be refused; Helm must then refuse them too, or it is a fault.
        ours = None
    if ours is not None:
        assert_same(ours, helm_template(helm, [file], release))


def test_differences_are_seen() -> None:
    assert differences({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}) == [".a[1].b: roost 'x', helm 'y'"]
    assert differences(1, True) == [": roost 1, helm True"]
    assert differences({"a": None}, {}) == [": key 'a' on one side only"]


def test_rendering_is_the_same_bytes_each_time(helm: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(ODD_VALUES["several sets, long names, terms"])
    assert yaml.safe_dump(roost_render([file])) == yaml.safe_dump(roost_render([file]))
