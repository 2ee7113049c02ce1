"""The configuration of the JupyterHub of test_view_signed_in.py. Without a proxy: hub and service by their ports.

The environment has: FOLDER, HUB_PORT, SERVICE_PORT, API_TOKEN, PYTHON and the command's DATABASE.
"""

from __future__ import annotations

import os
from typing import Any

from jupyterhub.proxy import Proxy
from jupyterhub.spawner import SimpleLocalProcessSpawner

FOLDER, HUB_PORT, SERVICE_PORT = (os.environ[name] for name in ("FOLDER", "HUB_PORT", "SERVICE_PORT"))
ADDRESS = f"http://127.0.0.1:{SERVICE_PORT}"
CALLBACK = f"{ADDRESS}/services/roost/oauth_callback"


class NoProxy(Proxy):  # type: ignore[misc]  # the hub's own class has no types
    should_start = False

    async def add_route(self, routespec: str, target: str, data: object) -> None:
        pass

    async def delete_route(self, routespec: str) -> None:
        pass

    async def get_all_routes(self) -> dict[str, Any]:
        return {}


class PodSpawner(SimpleLocalProcessSpawner):  # type: ignore[misc]  # as above
    """Keeps the state that KubeSpawner keeps."""

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "pod_name": f"jupyter-{self.user.name}", "namespace": "hub"}


c = get_config()  # type: ignore[name-defined]  # noqa: F821 - the hub defines it
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{HUB_PORT}"
c.JupyterHub.db_url = f"sqlite:///{FOLDER}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{FOLDER}/cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"grace"}
c.JupyterHub.spawner_class = PodSpawner
c.SimpleLocalProcessSpawner.home_dir_template = f"{FOLDER}/home/{{username}}"
# It never answers, so the server stays on its way.
c.Spawner.cmd = ["sleep", "600"]
c.Spawner.http_timeout = 600
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.JupyterHub.load_roles = [
    {"name": "user", "scopes": ["self", "access:services!service=roost"]},
    {"name": "roost", "services": ["roost"], "scopes": ["read:users:name", "read:servers", "admin:server_state"]},
    {"name": "tester", "services": ["tester"], "scopes": ["admin:users", "servers"]},
]
c.JupyterHub.services = [
    {"name": "tester", "api_token": os.environ["API_TOKEN"]},
    {
        "name": "roost",
        "url": ADDRESS,
        "command": [os.environ["PYTHON"], "-m", "roost", "view", "--jupyterhub", "--database", os.environ["DATABASE"]],
        "oauth_no_confirm": True,
        "oauth_redirect_uri": CALLBACK,
        # Without a proxy, the hub has another address than its services.
        "environment": {
            "JUPYTERHUB_HOST": f"http://127.0.0.1:{HUB_PORT}",
            "JUPYTERHUB_OAUTH_CALLBACK_URL": CALLBACK,
            "PYTHONPATH": os.environ["PYTHONPATH"],
        },
    },
]
