"""What the lint refuses about kube-scheduler's configuration kube-scheduler refuses too, or else
does something odd.
"""

import subprocess
from pathlib import Path

import pytest

from generator.render.manifests import render
from tests.builders import HUB_RELEASE
from tests.harness.fixtures import require_binary
from tests.parity.renderers import KUBECONFIG
from tests.unit.generator.linted import laid
from tests.unit.generator.test_lint_scheduler import OWN_PLUGIN, profiles

# kube-scheduler starts with these, and then does something else than is written.
SILENT = ("0 means 1", "still score", "each resource once", "it takes no arguments")
# Not in the configuration, or refused by the template already.
ELSEWHERE = ("at least one", "strategy: found nothing", "stay Pending")


@pytest.fixture(scope="session")
def kube_scheduler() -> Path:
    return require_binary("kube-scheduler")


def accepts(kube_scheduler: Path, text: str, folder: Path) -> bool:
    (config,) = (
        manifest.body["data"]
        for manifest in render(laid(text).values, HUB_RELEASE)
        if manifest.identity.kind == "ConfigMap" and manifest.identity.name.endswith("-scheduler")
    )
    assert isinstance(config, dict)
    (folder / "kubeconfig").write_text(KUBECONFIG)
    rendered = config["config.yaml"].replace(
        'kubeconfig: ""', f"kubeconfig: {folder / 'kubeconfig'}"
    )
    (folder / "config.yaml").write_text(rendered)
    arguments = [
        f"--config={folder / 'config.yaml'}",
        f"--write-config-to={folder / 'out'}",
        "--secure-port=0",
    ]
    return (
        subprocess.run([kube_scheduler, *arguments], capture_output=True, check=False).returncode
        == 0
    )


def is_one_of(reasons: tuple[str, ...], reason: str) -> bool:
    return any(one in reason for one in reasons)


@pytest.mark.parametrize(
    ("text", "reason"), [*profiles("scheduler-refused"), *profiles("scheduler-unfit")]
)
def test_kube_scheduler_refuses_what_the_lint_refuses(
    text: str, reason: str, kube_scheduler: Path, tmp_path: Path
) -> None:
    if not is_one_of(ELSEWHERE, reason):
        assert accepts(kube_scheduler, text, tmp_path) == is_one_of(SILENT, reason)


@pytest.mark.parametrize(("text", "reason"), profiles("scheduler-warned"))
def test_kube_scheduler_takes_what_the_lint_only_warns_of(
    text: str, reason: str, kube_scheduler: Path, tmp_path: Path
) -> None:
    assert accepts(kube_scheduler, text, tmp_path)


def test_a_plugin_of_another_image_is_unknown_to_it(kube_scheduler: Path, tmp_path: Path) -> None:
    assert not accepts(kube_scheduler, OWN_PLUGIN, tmp_path)
