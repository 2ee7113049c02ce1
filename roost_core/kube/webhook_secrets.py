"""Store a webhook's certificates: a Secret of the CA, a Secret of the leaf, and the caBundle in the
webhook's configuration.

A Secret is written with the resourceVersion that was read. So of two writers, the second gets a
conflict.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Final

from roost_core.kube.client import Client, ClusterError
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OWN_PART, PART_OF_LABEL

# Whom managedFields name as the owner of caBundle.
CA_BUNDLE_MANAGER: Final = "roost-webhook-ca"
OPAQUE: Final = "Opaque"
# HTTP statuses that say that another client wrote first. 422: the `test` of a JSON Patch failed.
CONFLICTS: Final = frozenset({409, 422})


class SharedSecret:
    """A Secret that several programs read."""

    def __init__(
        self, client: Client, namespace: str, name: str, owner: Callable[[], JSONObject | None]
    ) -> None:
        """owner: returns an ownerReference, so that the Secret is deleted with its owner."""
        self._client = client
        self._folder = f"/api/v1/namespaces/{namespace}/secrets"
        self._name = name
        self._owner = owner

    def read(self) -> tuple[JSONObject | None, dict[str, bytes]]:
        """Return the object (None: it doesn't exist) and its data. Raises ClusterError."""
        body = self._client.find(f"{self._folder}/{self._name}")
        if body is None:
            return None, {}
        try:
            data = {key: base64.b64decode(value) for key, value in (body.get("data") or {}).items()}
        except (binascii.Error, ValueError):
            data = {}
        return body, data

    def write(self, before: JSONObject | None, data: Mapping[str, bytes]) -> None:
        """Create the Secret, or replace its data.

        before: what `read` returned. Raises ApiError (409: another client wrote first),
        ClusterError.
        """
        if before is not None and before.get("type", OPAQUE) != OPAQUE:
            raise ClusterError(
                f"Secret {self._name} is of type {before['type']}, and Roost writes {OPAQUE} ones"
                " only: delete it, or set another webhook.certificates.secretName"
            )
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        if before is not None:
            self._client.replace(f"{self._folder}/{self._name}", {**before, "data": encoded})
            return
        metadata: JSONObject = {"name": self._name, "labels": {PART_OF_LABEL: OWN_PART}}
        owner = self._owner()
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": OPAQUE,
            "metadata": metadata,
            "data": encoded,
        }
        self._client.create(self._folder, body)


class BundleField:
    """The `caBundle` of each entry of a MutatingWebhookConfiguration.

    It is written by a JSON Patch, so that Roost owns only this field. By a server-side apply, it
    would own a part of each entry. When the values drop an entry, that part would stay, and the API
    server would refuse the upgrade.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._path = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}"
        # As last read: the resourceVersion, and the entries' names in their order.
        self._version = ""
        self._names: list[str] = []

    def read(self) -> dict[str, bytes] | None:
        """Return each entry's bundle by its name; None: the configuration doesn't exist.

        Raises ClusterError.
        """
        body = self._client.find(self._path)
        if body is None:
            return None
        entries = body.get("webhooks") or ()
        self._version = body["metadata"]["resourceVersion"]
        self._names = [entry["name"] for entry in entries]
        return {
            entry["name"]: base64.b64decode(entry["clientConfig"].get("caBundle") or "")
            for entry in entries
        }

    def apply(self, entries: Mapping[str, bytes]) -> None:
        """Set the bundles of entries, by name. Entries that are not named stay as they are.

        Raises ApiError (422: the configuration has changed since `read`), ClusterError.
        """
        operations: list[JSONObject] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": self._version}
        ]
        for index, name in enumerate(self._names):
            if name in entries:
                value = base64.b64encode(entries[name]).decode()
                operations.append(
                    {
                        "op": "add",
                        "path": f"/webhooks/{index}/clientConfig/caBundle",
                        "value": value,
                    }
                )
        self._client.change(self._path, operations, CA_BUNDLE_MANAGER)
