"""User pods, and what a spawn page shows, by the KubeSpawner package itself: a test meets a new
version of it first.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, cast
from unittest.mock import patch

from jupyterhub.objects import Hub
from kubespawner import KubeSpawner
from traitlets.config import Config

from tests.harness.controlplane import ControlPlane

# The client library reads KUBECONFIG when it is imported: too early for a control plane that a test
# started.
KUBECONFIG = "kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION"
# A kubeconfig for a cluster that is never spoken to.
NOWHERE = """\
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""


class SpawnedUser:
    """As much of a JupyterHub user as KubeSpawner reads."""

    id = 1
    url = "/user/ada/"
    server = None
    groups: tuple[str, ...] = ()
    settings: ClassVar[dict[str, str]] = {}

    def __init__(self, name: str) -> None:
        self.name = self.escaped_name = name


def spawner_of(user: str, traits: dict[str, Any], config: Config | None = None) -> KubeSpawner:
    spawner = KubeSpawner(hub=Hub(), user=SpawnedUser(user), config=config or Config(), _mock=True)
    for name, value in traits.items():
        if not spawner.has_trait(name):
            raise ValueError(f"KubeSpawner has no setting {name!r}.")
        setattr(spawner, name, value)
    spawner.api_token = "made-up"
    return spawner


def spawned_pod(user: str, kubeconfig: Path, **traits: object) -> dict[str, Any]:
    """The body that KubeSpawner posts for `user`; `traits` are KubeSpawner's own settings.

    Nothing is sent.
    """

    async def make() -> dict[str, Any]:
        spawner = spawner_of(user, traits)
        pod = await spawner.get_pod_manifest()
        body = cast("dict[str, Any]", spawner.api.api_client.sanitize_for_serialization(pod))
        await spawner.api.api_client.close()
        return body

    with patch(KUBECONFIG, str(kubeconfig)):
        return asyncio.run(make())


class Shown(NamedTuple):
    # Unix time.
    at: float
    message: str


class Spawn(NamedTuple):
    user: str
    # Name of the pod.
    pod: str
    shown: Sequence[Shown]
    # Unix time of the request.
    asked_at: float
    # Unix time from which the pod runs.
    up_at: float


async def _spawn(user: str, server: str, traits: dict[str, Any]) -> Spawn:
    # Without a host of its own, KubeSpawner goes on with the cluster that the process's first
    # spawner had.
    config = Config({"KubeSpawner": {"k8s_api_host": server}})
    spawner = spawner_of(user, traits, config)
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

    traits: KubeSpawner's own settings. All starts share KubeSpawner's watches, which belong to one
    event loop.
    """

    def __init__(self, cluster: ControlPlane, **traits: Any) -> None:
        self._cluster = cluster
        self._traits = traits
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(patch(KUBECONFIG, str(self._cluster.kubeconfig)))
        self._runner = self._stack.enter_context(asyncio.Runner())
        return self

    def __exit__(self, *_: object) -> None:
        KubeSpawner.reflectors.clear()
        self._stack.close()

    def start(self, *users: str, **traits: Any) -> list[Spawn]:
        """Start a server for each user at once; returns when all are up."""
        return self.start_each([(0.0, user, traits) for user in users])

    def start_each(self, starts: Sequence[tuple[float, str, dict[str, Any]]]) -> list[Spawn]:
        """Start servers, each so many seconds from now, for a user, with traits of its own; returns
        when all are up.
        """

        async def one(after_seconds: float, user: str, traits: dict[str, Any]) -> Spawn:
            await asyncio.sleep(after_seconds)
            return await _spawn(user, self._cluster.server, {**self._traits, **traits})

        async def all_of_them() -> list[Spawn]:
            return list(await asyncio.gather(*[one(*start) for start in starts]))

        return self._runner.run(all_of_them())
