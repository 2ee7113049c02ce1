"""What zero-to-jupyterhub's hub is configured with, for a hub outside of the cluster; `hub.py`
gives the rest.
"""

import json
import os
from pathlib import Path

c = get_config()  # type: ignore[name-defined] # noqa: F821 - JupyterHub's loader defines it
given = json.loads(os.environ["ROOST_TEST_HUB"])

c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = given["password"]
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = given["url"]
c.JupyterHub.hub_bind_url = given["hub_url"]
c.JupyterHub.api_page_max_limit = given["most_users"]
c.JupyterHub.db_url = given["database"]
c.JupyterHub.cookie_secret = bytes(32)
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = given["proxy_api_url"]
c.ConfigurableHTTPProxy.auth_token = given["proxy_token"]
culler = {"name": "jupyterhub-idle-culler", "api_token": given["culler_token"]}
seating = {"name": "roost-seating", "api_token": given["seating_token"]}
c.JupyterHub.services = [{"name": "tests", "api_token": given["token"]}, culler, seating]
c.JupyterHub.load_groups = {name: {"users": users} for name, users in given["groups"].items()}
c.JupyterHub.load_roles = [
    {
        "name": "tests",
        "scopes": ["admin:users", "admin:servers", "list:users", "read:metrics"],
        "services": ["tests"],
    },
    {
        "name": "jupyterhub-idle-culler",
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        "services": ["jupyterhub-idle-culler"],
    },
    {"name": "roost-seating", "scopes": given["seating_scopes"], "services": ["roost-seating"]},
]

# zero-to-jupyterhub's own choices.
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.JupyterHub.cleanup_servers = False
c.JupyterHub.last_activity_interval = 60
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.JupyterHub.concurrent_spawn_limit = 64
c.JupyterHub.allow_named_servers = True
c.Spawner.consecutive_failure_limit = 5
c.Spawner.cmd = "jupyterhub-singleuser"
c.KubeSpawner.common_labels = {
    "app": "jupyterhub",
    "app.kubernetes.io/name": "jupyterhub",
    "app.kubernetes.io/instance": "hub",
    "app.kubernetes.io/managed-by": "kubespawner",
    "release": "hub",
}
user_nodes = {
    "matchExpressions": [
        {"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}
    ]
}
c.KubeSpawner.node_affinity_preferred = [{"weight": 100, "preference": user_nodes}]
c.KubeSpawner.uid, c.KubeSpawner.fs_gid = 1000, 100
c.KubeSpawner.events_enabled = True

for name, value in given["spawner"].items():
    setattr(c.KubeSpawner, name, value)
for name, value in given["hub"].items():
    setattr(c.JupyterHub, name, value)

for path in given["extra_config"]:
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"))  # noqa: S102 - ours
