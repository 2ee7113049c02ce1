"""Run an installed release's programs as the cluster has them, whatever Helm put there.

Owns the reading of Deployments and ConfigMaps from the API server, where `tests.stack` keeps what
it rendered itself.
"""

import re
import threading

from roost_core.objects.fields import JSONObject
from tests.harness.controlplane import ControlPlane
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.stack import READY_SECONDS, Stack


class InstalledRelease(Stack):
    """Programs for a release that somebody else installs, changes and takes back.

    Give `webhook_url` as `webhook.url` in its values. Call `run` after each change.
    """

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        super().__init__(cluster, namespace, controllers=True)
        self.folder = cluster.folder / f"installed-{namespace}"
        self.folder.mkdir()
        self._mounting = threading.Thread()
        self.port = self._stack.enter_context(ReservedPort())

    def start(self) -> "InstalledRelease":
        """Nothing runs before `run`."""
        return self

    def stop(self) -> None:
        """End the programs; what is installed stays."""
        self.end_programs()
        self._stack.close()

    @property
    def webhook_url(self) -> str:
        return f"https://{LOOPBACK}:{self.port.number}/mutate"

    def run(self) -> None:
        """Replace the programs by those that the cluster's Deployments name now; returns when all
        serve and lead.
        """
        self.end_programs()
        self._read()
        self._over = threading.Event()
        self._mounting = threading.Thread(target=self._keep_mounted, daemon=True)
        self._mounting.start()
        self.start_controllers()
        self.start_scheduler(self._scheduler_minor()).wait_leading()
        self.start_webhook().wait_ready()
        self.controllers[0].wait_leading()

    def end_programs(self) -> None:
        for replica in (*self.recorders, *self.controllers):
            if replica.process.exit_code is None:
                replica.process.stop(grace_seconds=READY_SECONDS)
        for webhook in self.webhooks:
            # Not by SIGTERM: it would serve on for ten seconds, and nobody asks it.
            webhook.process.kill()
        for scheduler in self.schedulers:
            scheduler.stop()
        for kept in (self.recorders, self.controllers, self.webhooks, self.schedulers):
            kept.clear()
        self._over.set()
        if self._mounting.is_alive():
            self._mounting.join()

    def objects(self, version: str, resource: str) -> list[JSONObject]:
        group = "api" if version == "v1" else "apis"
        return self.cluster.api.list(
            f"/{group}/{version}/namespaces/{self.namespace}/{resource}",
            labelSelector=f"app.kubernetes.io/instance={self.release}",
        )

    def _read(self) -> None:
        deployments = self.objects("apps/v1", "deployments")
        self.deployments = {
            deployment["metadata"]["labels"]["app.kubernetes.io/component"]: deployment
            for deployment in deployments
        }
        self.manifests = [{**one, "kind": "ConfigMap"} for one in self.objects("v1", "configmaps")]
        for component in self.deployments:
            self._mount(component)

    def _scheduler_minor(self) -> str:
        (container,) = self._pod_spec("scheduler")["containers"]
        found = re.search(r":v(\d+\.\d+)\.", container["image"])
        assert found, container["image"]
        return found[1]
