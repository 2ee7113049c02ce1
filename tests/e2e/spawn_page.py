"""What a JupyterHub's spawn page shows, by the KubeSpawner package's own `start` and `progress`."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, cast
from unittest.mock import patch

from jupyterhub.objects import Hub
from kubespawner import KubeSpawner
from traitlets.config import Config

from tests.e2e.spawned import SpawnedUser
from tests.harness.controlplane import ControlPlane


class Shown(NamedTuple):
    """A line of the spawn page."""

    # Unix time.
    at: float
    message: str


class Spawn(NamedTuple):
    """One start of a server."""

    user: str
    # Name of the pod.
    pod: str
    shown: Sequence[Shown]
    # Unix time of the request.
    asked_at: float
    # Unix time from which the pod runs.
    up_at: float


async def _spawn(user: str, server: str, traits: dict[str, Any]) -> Spawn:
    # Without a host of its own, KubeSpawner goes on with the cluster that the process's first spawner had.
    config = Config({"KubeSpawner": {"k8s_api_host": server}})
    spawner = KubeSpawner(hub=Hub(), user=SpawnedUser(user), config=config, _mock=True)
    for name, value in traits.items():
        if not spawner.has_trait(name):
            raise ValueError(f"KubeSpawner has no setting {name!r}.")
        setattr(spawner, name, value)
    spawner.api_token = "made-up"
    asked_at = time.time()
    # As JupyterHub does: the page follows a start that goes on beside it.
    start = asyncio.ensure_future(spawner.start())
    try:
        shown = [Shown(time.time(), str(event["message"])) async for event in spawner.progress()]
        await start
        return Spawn(user, cast("str", spawner.pod_name), shown, asked_at, time.time())
    finally:
        start.cancel()


class SpawnPages:
    """A hub that starts servers: `with SpawnPages(cluster, **traits) as pages: pages.start("ada")`.

    traits: KubeSpawner's own settings. All starts share KubeSpawner's watches, which belong to one event loop.
    """

    def __init__(self, cluster: ControlPlane, **traits: Any) -> None:
        self._cluster = cluster
        self._traits = traits
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        # The client library reads KUBECONFIG when it is imported: too early for a control plane that a test started.
        place = "kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION"
        self._stack.enter_context(patch(place, str(self._cluster.kubeconfig)))
        self._runner = self._stack.enter_context(asyncio.Runner())
        return self

    def __exit__(self, *_: object) -> None:
        KubeSpawner.reflectors.clear()
        self._stack.close()

    def start(self, *users: str, **traits: Any) -> list[Spawn]:
        """Start a server for each user at once; returns when all are up."""
        return self.start_each([(0.0, user, traits) for user in users])

    def start_each(self, starts: Sequence[tuple[float, str, dict[str, Any]]]) -> list[Spawn]:
        """Start servers, each so many seconds from now, for a user, with traits of its own; returns when all are up."""

        async def one(after_seconds: float, user: str, traits: dict[str, Any]) -> Spawn:
            await asyncio.sleep(after_seconds)
            return await _spawn(user, self._cluster.server, {**self._traits, **traits})

        async def all_of_them() -> list[Spawn]:
            return list(await asyncio.gather(*[one(*start) for start in starts]))

        return self._runner.run(all_of_them())
