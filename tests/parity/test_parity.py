"""`helm template` and `roost render` give the same objects for the same values."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.checks import find_faults
from generator.faults import UsageError, ValuesError
from generator.values.files import read_values
from generator.values.release_name import Release, check_release
from tests.builders import CHART_VALUES, HUB_RELEASE
from tests.harness.fixtures import require_binary
from tests.parity.drawn_values import overrides
from tests.parity.renderers import (
    ODD,
    HelmError,
    assert_same,
    differences,
    helm_template,
    roost_render,
)
from tests.recorded_data import rows

# One example costs about 0.1 s, nearly all of it Helm's. ROOST_PARITY_EXAMPLES=5000 searches for an
# evening.
EXAMPLES = int(os.environ.get("ROOST_PARITY_EXAMPLES", "200"))
# How many of the drawn examples must have come to a comparison.
LEAST_SHARE = 0.8


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn")


@pytest.mark.parametrize("program", ["helm", "helm3"])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.stem)
def test_helm_and_roost_render_the_same_objects(odd: Path, program: str) -> None:
    assert_same(roost_render([odd]), helm_template(require_binary(program), [odd]))


@pytest.mark.parametrize(
    "release", [Release(*row) for row in rows("parity/releases")], ids=lambda one: one.name
)
def test_names_agree_for_every_release(release: Release, helm: Path) -> None:
    assert_same(roost_render([], release), helm_template(helm, [], release))


def test_whatever_the_schema_allows_renders_the_same(helm: Path, folder: Path) -> None:
    refused = compared = 0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        values=overrides(CHART_VALUES),
        mode=st.sampled_from(["webhook", "policy", "none", None]),
        minor=st.sampled_from(["v1.33.0", "v1.35.0", "v1.36.3", "v1.37.2", "v1.38.0"]),
    )
    def compare(values: dict[str, object], mode: str | None, minor: str) -> None:
        nonlocal refused, compared
        if mode is not None:
            values = {**values, "admission": {"mode": mode}}
        file = folder / "drawn.yaml"
        # Unescaped: YAML takes no pair of escapes for one character, as JSON does.
        file.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
        release = Release(HUB_RELEASE.name, HUB_RELEASE.namespace, minor)
        try:
            ours = roost_render([file], release)
        except ValuesError:
            # Halves that are valid alone may not be together: nothing to compare.
            refused += 1
            return
        compared += 1
        files = [file]
        faults = find_faults(read_values([str(file)]), release)
        refusals = [
            fault
            for fault in faults
            if fault.severity == "error" and fault.key == "webhook.certificates.mode"
        ]
        if refusals:
            words = "|".join(re.escape(str(refusal).partition(": ")[2]) for refusal in refusals)
            with pytest.raises(HelmError, match=words):
                helm_template(helm, [file], release)
            # The rest is compared with certificates of others.
            files.append(folder / "certificates.yaml")
            files[-1].write_text("webhook: {certificates: {mode: certManager}}")
            ours = roost_render(files, release)
        assert_same(ours, helm_template(helm, files, release))

    compare()
    # Were most refused, nothing would have been tried.
    assert compared >= LEAST_SHARE * (compared + refused), (
        f"{refused} of {compared + refused} refused"
    )


@pytest.mark.parametrize(
    ("version", "is_taken"), [("v1.32.9", False), ("v1.33.0-rc.1", True), ("v1.33.0", True)]
)
def test_helm_and_roost_take_the_same_clusters(version: str, is_taken: bool, helm: Path) -> None:
    release = Release(HUB_RELEASE.name, HUB_RELEASE.namespace, version)
    if is_taken:
        check_release(release)
        helm_template(helm, [], release)
        return
    with pytest.raises(UsageError, match="too old"):
        check_release(release)
    with pytest.raises(HelmError, match="incompatible with Kubernetes"):
        helm_template(helm, [], release)


def test_a_difference_names_its_key_and_both_values() -> None:
    assert differences({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}) == [
        ".a[1].b: roost 'x', helm 'y'"
    ]
    assert differences(1, True) == [": roost 1, helm True"]
    assert differences({"a": None}, {}) == [": key 'a' on one side only"]
