"""Make user pods with the KubeSpawner package itself, so that a new version of it is met by a test first."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar, cast
from unittest.mock import patch

from jupyterhub.objects import Hub
from kubespawner import KubeSpawner
from traitlets.config import Config

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


def spawned_pod(user: str, kubeconfig: Path, **traits: object) -> dict[str, Any]:
    """The body that KubeSpawner posts for `user`; `traits` are KubeSpawner's own settings. Nothing is sent."""

    async def make() -> dict[str, Any]:
        spawner = KubeSpawner(hub=Hub(), user=SpawnedUser(user), config=Config(), _mock=True)
        for name, value in traits.items():
            if not spawner.has_trait(name):
                raise ValueError(f"KubeSpawner has no setting {name!r}.")
            setattr(spawner, name, value)
        spawner.api_token = "made-up"
        pod = await spawner.get_pod_manifest()
        body = cast("dict[str, Any]", spawner.api.api_client.sanitize_for_serialization(pod))
        await spawner.api.api_client.close()
        return body

    # The client library reads KUBECONFIG when it is imported: too early for a control plane that a test started.
    with patch("kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig)):
        return asyncio.run(make())
