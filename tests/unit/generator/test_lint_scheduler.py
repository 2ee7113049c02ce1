"""`roost validate` on kube-scheduler: what it would refuse, and what it would silently do
otherwise.
"""

import pytest
import yaml

from generator.pipeline import render
from generator.render.deployed_scheduler import gates_of
from generator.schema.check import find_faults
from generator.values.lookups import mapping
from generator.values.release_name import Release
from roost_core.scheduler.plugins import GATES, NEWEST_MINOR, OLDEST_MINOR
from tests.recorded_data import rows
from tests.unit.generator.linted import (
    assert_refused,
    assert_warned,
    found,
    laid,
    merged,
    said,
    table,
)


def raw(plugins: str = "{}", config: str = "") -> str:
    """Values of a profile with these plugins and this pluginConfig, and none of the spreading that
    is warned of.
    """
    spread = "{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: []}}"
    return (
        f"scheduler: {{profiles: {{user: {{plugins: {plugins}, pluginConfig: [{spread},"
        f" {config}]}}}}}}"
    )


def profiles(name: str) -> list[tuple[str, str]]:
    """Rows whose values may be a profile's plugins alone, or one entry of its pluginConfig."""

    def whole(text: str) -> str:
        if text.startswith(("scheduler:", "{scheduler:")):
            return text
        return raw(config=text) if text.startswith("{name:") else raw(text)

    return [(whole(text), reason) for text, reason in table(name)]


OWN_PLUGIN = (
    raw("{score: {enabled: [{name: Mine, weight: 5}]}}")[:-1]
    + ", image: {name: quay.io/me/my-scheduler}}"
)


@pytest.mark.parametrize(("text", "reason"), profiles("scheduler-refused"))
def test_values_that_can_not_work_are_refused_with_the_reason(text: str, reason: str) -> None:
    assert_refused(text, reason)


@pytest.mark.parametrize(("text", "reason"), profiles("scheduler-unfit"))
def test_what_kube_scheduler_would_not_take_is_said(text: str, reason: str) -> None:
    (fault,) = find_faults(laid(text))
    assert reason in str(fault)
    assert fault.line


@pytest.mark.parametrize(
    ("text", "reason"), [*profiles("scheduler-warned"), (OWN_PLUGIN, "must include it")]
)
def test_values_that_surprise_are_warned_of_with_the_reason(text: str, reason: str) -> None:
    assert_warned(text, reason)


@pytest.mark.parametrize("config", rows("generator/own-arguments"))
def test_kube_schedulers_own_value_of_an_argument_is_not_warned_of_when_it_is_written_out(
    config: str,
) -> None:
    assert said(raw(config=config)) == ""


def test_the_lint_says_file_line_key_and_reason() -> None:
    assert (
        said("scheduler:\n  replicas: 0\n")
        == "prod.yaml:2: scheduler.replicas: found 0, expected at least 1. Without it pods with a"
        " profile stay Pending. Use scheduler.target: none to keep the cluster's scheduler."
    )


def test_a_cluster_older_than_every_known_scheduler_is_warned_of() -> None:
    assert "newer than the cluster" in said("", Release(kube_version="v1.32.0"))
    for minor in (*range(33, 38), 40):
        assert found("", Release(kube_version=f"v1.{minor}.0")) == []


@pytest.mark.parametrize(("gates", "version", "expected"), rows("generator/feature-gates"))
def test_feature_gates_that_the_clusters_scheduler_would_not_take_are_said(
    gates: str, version: str, expected: str
) -> None:
    assert expected in said(
        f"scheduler: {{featureGates: {{{gates}}}}}", Release(kube_version=version)
    )


@pytest.mark.parametrize(("scheduler", "version", "off"), rows("generator/scheduler-gates"))
def test_gates_are_switched_off_where_the_scheduler_that_is_deployed_knows_them(
    scheduler: str, version: str, off: list[str]
) -> None:
    text = f"scheduler: {scheduler}"
    release = Release(kube_version=version)
    values = merged(text)
    manifests, _ = render(values, release)
    (deployment,) = (
        yaml.safe_load(manifest.text)
        for manifest in manifests
        if manifest.template == "scheduler/deployment.yaml.j2"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    flags = [flag for flag in container["command"] if flag.startswith("--feature-gates=")]
    assert [flag for flag in flags if flag.endswith("=false")] == [
        f"--feature-gates={gate}=false" for gate in off
    ]
    gates = gates_of(mapping(values.values["scheduler"]), release)
    assert sorted(gate for gate, is_on in gates.items() if not is_on) == off
    # Nobody is told to leave out what they didn't write.
    assert "would not start" not in said(text, release)


def test_the_gates_that_roost_sets_are_known_to_each_minor_and_are_as_the_model_has_them() -> None:
    for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1):
        assert said("", Release(kube_version=f"v1.{minor}.0")) == ""
        own = gates_of({}, Release(kube_version=f"v1.{minor}.0"))
        assert own == dict.fromkeys(own, False)
        assert all(minor >= GATES[name].since for name in own)


@pytest.mark.parametrize(("profile", "minor"), rows("generator/later-keys"))
def test_a_key_of_a_later_minor_is_said(profile: str, minor: int) -> None:
    expected = f"nothing, for kube-scheduler 1.{minor - 1}: it came with 1.{minor}."
    assert expected in said(profile, Release(kube_version=f"v1.{minor - 1}.0"))
    assert found(profile, Release(kube_version=f"v1.{minor}.0")) == []


ON = "featureGates: {GangScheduling: true, GenericWorkload: true}"


@pytest.mark.parametrize(("plugin", "minor", "expected"), rows("generator/plugins"))
def test_a_plugin_of_a_later_minor_or_behind_a_gate_is_said(
    plugin: str, minor: int, expected: str
) -> None:
    text, release = (
        raw(f"{{multiPoint: {{enabled: [{{name: {plugin}}}]}}}}"),
        Release(kube_version=f"v1.{minor}.0"),
    )
    assert expected in said(text, release)
    if plugin == "GangScheduling":
        assert said(text.replace("{profiles", f"{{{ON}, profiles"), release) == ""
