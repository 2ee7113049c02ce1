"""Helm's own validation accepts and refuses the values that ours does: one schema, two readers of
it.
"""

import shutil
from pathlib import Path

import pytest

from tests.harness.fixtures import require_binary
from tests.parity.renderers import CHART, HelmError, run_helm
from tests.unit.generator.linted import table


@pytest.fixture(scope="session")
def bare_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart without its templates: only the schema can refuse."""
    chart = tmp_path_factory.mktemp("bare")
    for name in ("Chart.yaml", "values.yaml", "values.schema.json"):
        shutil.copy(CHART / name, chart / name)
    return chart


@pytest.fixture(scope="session", params=["helm", "helm3"])
def helm(request: pytest.FixtureRequest) -> Path:
    return require_binary(request.param)


@pytest.mark.parametrize("text", ["", *(text for text, _ in table("schema-accepted"))])
def test_what_roost_accepts_helm_accepts(
    text: str, helm: Path, bare_chart: Path, tmp_path: Path
) -> None:
    (tmp_path / "values.yaml").write_text(text)
    run_helm(helm, "template", "r", str(bare_chart), "-f", str(tmp_path / "values.yaml"))


@pytest.mark.parametrize("text", ["global: 1", *(text for text, _ in table("schema-refused"))])
def test_what_roost_refuses_helm_refuses(
    text: str, helm: Path, bare_chart: Path, tmp_path: Path
) -> None:
    (tmp_path / "values.yaml").write_text(text)
    with pytest.raises(HelmError, match=r"don't meet the specifications|type mismatch"):
        run_helm(helm, "template", "r", str(bare_chart), "-f", str(tmp_path / "values.yaml"))
