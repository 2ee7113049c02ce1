"""The lines for the hub's values that make the spawn page speak plainly, tried with the real
KubeSpawner.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.objects import Hub
from kubespawner import KubeSpawner
from traitlets.config import Config

from generator.importing.importer import import_layers
from generator.values.loader import load
from generator.values.lookups import child
from tests.e2e.spawned import NOWHERE, SpawnedUser
from tests.recorded_data import printed
from tools.root import ROOT

HUB = "singleuser: {memory: {guarantee: 2G}}\n"
UNSCHEDULABLE = (
    "0/4 nodes are available: 1 Insufficient cpu. preemption: 0/4 nodes are available: 1 No"
    " preemption victims found."
)


def documented() -> Mapping[str, object]:
    """What docs/start-notices.md gives for the hub's values, with the file that it sets."""
    text = (ROOT / "docs" / "start-notices.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ((name, file),) = re.findall(r"--set-file hub\.extraConfig\.(\w+)=(\S+)", text)
    hub = child(load(block.encode(), "start-notices.md").values, "hub")
    assert isinstance(hub, Mapping)
    code = (ROOT / file).read_text(encoding="utf-8")
    return {"hub": {**hub, "extraConfig": {name: code}}}


def event(number: int, reason: str, message: str, kind: str = "Normal") -> dict[str, Any]:
    about = {
        "metadata": {"uid": str(number)},
        "involvedObject": {"name": "jupyter-ada"},
        "eventTime": None,
    }
    said = {
        "reason": reason,
        "type": kind,
        "message": message,
        "lastTimestamp": f"2026-11-23T09:00:0{number}Z",
    }
    return {**about, **said}


def page(
    values: Mapping[str, object],
    events: Sequence[dict[str, Any]],
    kubeconfig: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """What KubeSpawner's own `progress` shows of these Events, configured as zero-to-jupyterhub
    configures it.
    """
    kubeconfig.write_text(NOWHERE)
    monkeypatch.setattr(
        "kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig)
    )
    # Restored after the test.
    monkeypatch.setattr(KubeSpawner, "progress", KubeSpawner.progress)
    config = Config()
    for section, traits in dict(child(values, "hub", "config") or {}).items():  # type: ignore[call-overload]
        config[section].update(traits)
    for code in dict(child(values, "hub", "extraConfig") or {}).values():  # type: ignore[call-overload]
        exec(code, {"c": config})  # noqa: S102 - as zero-to-jupyterhub does

    async def nothing(*_: object, **__: object) -> None:
        return None

    async def shown() -> list[str]:
        spawner = KubeSpawner(hub=Hub(), user=SpawnedUser("ada"), config=config, _mock=True)
        assert spawner.slow_spawn_message_threshold == 60
        monkeypatch.setattr(KubeSpawner, "_start_watching_events", nothing)
        monkeypatch.setattr(KubeSpawner, "event_reflector", SimpleNamespace(events=events))
        spawner.pod_name = "jupyter-ada"
        spawner._start_future = asyncio.get_running_loop().create_future()
        spawner._start_future.set_result(None)
        messages = [str(each["message"]) async for each in spawner.progress()]
        await spawner.api.api_client.close()
        return messages

    return asyncio.run(shown())


@pytest.mark.slow
def test_warnings_of_scheduler_and_autoscaler_are_said_once_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    events = [
        event(1, "FailedScheduling", UNSCHEDULABLE, "Warning"),
        event(2, "WaitsForNode", "It waits for a new one."),
        event(3, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
        event(4, "TriggeredScaleUp", "pod triggered scale-up: [{pool 1->2 (max: 9)}]"),
        event(5, "FailedScheduling", UNSCHEDULABLE, "Warning"),
        event(6, "Scheduled", "Successfully assigned jhub/jupyter-ada to node-2"),
        event(7, "FailedMount", "MountVolume.SetUp failed", "Warning"),
    ]
    with caplog.at_level(logging.WARNING):
        shown = page(documented(), events, tmp_path / "kubeconfig", monkeypatch)
    assert shown == printed("spawn-page").splitlines()
    # KubeSpawner knows every setting.
    assert "not recognized" not in caplog.text


def test_the_report_points_to_the_lines_or_says_that_the_page_shows_no_events() -> None:
    assert "docs/start-notices.md has lines" in import_layers([("hub.yaml", HUB)]).report()
    without_events = HUB + "hub: {config: {KubeSpawner: {events_enabled: false}}}\n"
    silent = import_layers([("hub.yaml", without_events)]).report()
    assert "hub.config.KubeSpawner.events_enabled is false" in silent
    assert "has lines" not in silent
