"""Read from the API server's audit log who wrote what and when, and what that proves of leaders and budgets."""

import base64
import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.harness.controlplane import ControlPlane

Object = dict[str, Any]
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
CREDENTIAL = "authentication.kubernetes.io/credential-id"
# As cluster.leases has it: how long a holder may be trusted after it was last heard of.
LEASE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was answered. `at`: seconds since the epoch, when it reached the API server."""

    at: float
    who: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    status: int

    @property
    def is_write(self) -> bool:
        # A review of one's own name is asked for by a `create`, and leaves nothing.
        return self.verb in WRITES and not self.resource.endswith("reviews")

    @property
    def is_lease(self) -> bool:
        return self.resource == "leases"

    @property
    def is_eviction(self) -> bool:
        return (self.resource, self.subresource, self.verb) == ("pods", "eviction", "create")


def credential_of(kubeconfig: Path) -> str:
    """What the audit log calls the token of a kubeconfig: each token has an id of its own."""
    config = yaml.safe_load(kubeconfig.read_text())
    payload = config["users"][0]["user"]["token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"


def requests_of(cluster: ControlPlane, names: Mapping[str, str]) -> list[Request]:
    """What the holders of these credentials asked, in order; `names` gives each credential a name."""
    found = []
    for event in cluster.audit_events():
        who = next((names[one] for one in event["user"].get("extra", {}).get(CREDENTIAL, ()) if one in names), None)
        about = event.get("objectRef")
        if who is None or about is None:
            continue
        found.append(
            Request(
                at=dt.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
                who=who,
                verb=event["verb"],
                resource=about.get("resource", ""),
                subresource=about.get("subresource", ""),
                namespace=about.get("namespace", ""),
                name=about.get("name", ""),
                status=event.get("responseStatus", {}).get("code", 0),
            )
        )
    return sorted(found, key=lambda request: request.at)


def most_in_a_minute(requests: Iterable[Request]) -> int:
    """The most of them within any 60 s."""
    times = [request.at for request in requests]
    return max((sum(start <= at < start + 60.0 for at in times) for start in times), default=0)


def writes_without_the_lease(requests: Sequence[Request]) -> list[Request]:
    """Writes by somebody who wasn't the last to have written the Lease, or had written it too long ago."""
    holder, since, wrong = "", 0.0, []
    for request in requests:
        if request.is_lease:
            if request.is_write and request.status < 300:
                holder, since = request.who, request.at
        elif request.is_write and (request.who != holder or request.at - since > LEASE_SECONDS):
            wrong.append(request)
    return wrong
