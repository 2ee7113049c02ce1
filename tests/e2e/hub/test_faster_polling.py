"""Hubs with docs/upstream/faster_polling.py start servers, and give up hopeless ones in time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.controlplane import ControlPlane
from tests.harness.hub.hub import RealHub, ensure_pinned_hub
from tests.harness.hub.people import start
from tests.harness.hub.stage import hub_stage
from tests.harness.hub.user_pods import PORT
from tools.root import ROOT

SNIPPET: Final = ROOT / "docs" / "upstream" / "faster_polling.py"
IMAGE: Final = "quay.io/hub/light:1"
SPAWNER: Final[dict[str, Any]] = {
    "image": IMAGE,
    "mem_guarantee": "1G",
    "port": PORT,
    "start_timeout": 60,
    "profile_list": [
        {"display_name": "Light", "slug": "light", "default": True},
        {
            "display_name": "Slow to answer",
            "slug": "slow",
            "kubespawner_override": {"environment": {"ANSWERS_AFTER": "5"}},
        },
        {
            "display_name": "Fits no node",
            "slug": "giant",
            "kubespawner_override": {"mem_guarantee": "500G", "start_timeout": 5},
        },
    ],
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with hub_stage(["user-a"], {IMAGE: 0.5}) as stage:
        yield stage.cluster


@pytest.mark.parametrize("version", ["pinned", "newest"])
def test_servers_start_and_hopeless_ones_are_given_up(cluster: ControlPlane, version: str) -> None:
    packages = ensure_pinned_hub() if version == "pinned" else None
    namespace = cluster.create_namespace(f"polling-{version}")
    hub = RealHub(cluster, namespace, packages=packages, extra_config=(SNIPPET,), **SPAWNER)
    with hub:
        users = ["ada", "bob", "eve"]
        visits = dict(zip(users, start(hub.url, users, ["light", "slow", "giant"]), strict=True))
        assert visits["ada"].answered_at, visits
        assert visits["bob"].answered_at, visits
        assert "did not start in 5 seconds" in visits["eve"].failure, visits
        log = hub.hub.tail(2000)
        assert "isn't applied" not in log
        # A second round, whose pods have the names of the first's.
        hub.stop_servers()
        again = start(hub.url, ["ada"], ["light"])
        assert again[0].answered_at, again


def test_a_hub_of_another_version_says_so_and_starts_servers(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    text = SNIPPET.read_text(encoding="utf-8")
    older = tmp_path / "older.py"
    older.write_text(text.replace('("5.5.0", "6.1.1")', '("1.0.0",)'), encoding="utf-8")
    namespace = cluster.create_namespace("polling-other")
    packages = ensure_pinned_hub()
    hub = RealHub(cluster, namespace, packages=packages, extra_config=(older,), **SPAWNER)
    with hub:
        (visit,) = start(hub.url, ["ada"], ["light"])
        assert visit.answered_at, visit
        said = "Faster polling isn't applied: found JupyterHub 5.5.0, tested with 1.0.0."
        assert said in hub.hub.tail(2000)
