"""What the lint refuses about kube-scheduler's configuration kube-scheduler refuses too, or else does something odd."""

import subprocess
from pathlib import Path

import pytest

from generator.render.manifests import render
from tests.harness.fixtures import require_binary
from tests.parity.renderers import RELEASE
from tests.unit.generator.linted import laid
from tests.unit.generator.test_lint_scheduler import ERRORS, UNFIT, WARNINGS

# kube-scheduler starts with these, and then does something else than is written.
SILENT = {
    *("weight 0 means 1", "preScore off but scored", "all preScore off", "resource weight 0", "resource twice"),
    "argument of a plugin without",
}
REFUSED = ERRORS | UNFIT
# Not in the configuration, or refused by the template already.
ELSEWHERE = {"no profile", "profile without a strategy", "no scheduler", "renew order", "own pods in a class"}
# For an image that holds the plugin.
OTHER_IMAGE = {"another scheduler's plugin"}

KUBECONFIG = """
{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
 clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: a, user: {token: x}}]}
"""


@pytest.fixture(scope="session")
def kube_scheduler() -> Path:
    return require_binary("kube-scheduler")


def accepts(kube_scheduler: Path, text: str, folder: Path) -> bool:
    """Return whether kube-scheduler takes the configuration that these values give to the user profile."""
    (config,) = (
        manifest.body["data"]
        for manifest in render(laid(text).values, RELEASE)
        if manifest.identity.kind == "ConfigMap" and manifest.identity.name.endswith("-scheduler")
    )
    assert isinstance(config, dict)
    (folder / "kubeconfig").write_text(KUBECONFIG)
    rendered = config["config.yaml"].replace('kubeconfig: ""', f"kubeconfig: {folder / 'kubeconfig'}")
    (folder / "config.yaml").write_text(rendered)
    arguments = [f"--config={folder / 'config.yaml'}", f"--write-config-to={folder / 'out'}", "--secure-port=0"]
    return subprocess.run([kube_scheduler, *arguments], capture_output=True, check=False).returncode == 0


def cases(table: dict[str, tuple[str, str]]) -> list[str]:
    return [name for name, (text, _reason) in table.items() if "scheduler:" in text and name not in ELSEWHERE]


@pytest.mark.parametrize("case", cases(REFUSED))
def test_kube_scheduler_refuses_what_the_lint_refuses(case: str, kube_scheduler: Path, tmp_path: Path) -> None:
    assert accepts(kube_scheduler, REFUSED[case][0], tmp_path) == (case in SILENT)


@pytest.mark.parametrize("case", cases(WARNINGS))
def test_kube_scheduler_takes_what_the_lint_only_warns_of(case: str, kube_scheduler: Path, tmp_path: Path) -> None:
    assert accepts(kube_scheduler, WARNINGS[case][0], tmp_path) == (case not in OTHER_IMAGE)
