"""`roost seating` beside a real hub of the tests."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from tests.harness.controlplane import ControlPlane
from tests.harness.hub.hub import RealHub
from tests.harness.ports import LOOPBACK
from tests.harness.processes import Process

ROOST: Final = Path(sys.executable).parent / "roost"


class Seating:
    """The service, as a process beside the hub, with a file of bookings."""

    def __init__(self, cluster: ControlPlane, hub: RealHub, folder: Path, **events: Any) -> None:
        self._cluster = cluster
        self._hub = hub
        self._folder = folder
        self._starts = 0
        switched_on = {"enabled": True, "configMaps": True, "booked": []}
        events = {"maxPeople": 500, "concurrentSpawnLimit": 64, **switched_on, **events}
        release = {"placeholders": [{"name": "default"}], "events": events}
        (folder / "release.json").write_text(json.dumps(release))
        (folder / "token").write_text(hub.seating_token)
        self.process: Process | None = None

    def book(self, *entries: dict[str, Any]) -> None:
        (self._folder / "events.yaml").write_text(yaml.safe_dump(list(entries)))

    def start(self, *flags: str, grace_seconds: float) -> Process:
        self._starts += 1
        arguments = [
            "seating",
            f"--settings={self._folder}/release.json",
            f"--bookings={self._folder}/events.yaml",
            f"--state={self._folder}/state.json",
            f"--token-file={self._folder}/token",
            f"--hub-url={self._hub.url}/hub/api",
            f"--grace-minutes={grace_seconds / 60}",
            f"--bind-address={LOOPBACK}",
            "--port=0",
            *flags,
        ]
        name = f"seating-{self._hub.namespace}-{self._starts}"
        self.process = self._cluster.run.start(name, ROOST, arguments)
        return self.process
