"""An API server with everything of an install that works, for tests of `roost doctor`."""

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, cast

from generator.render.manifests import render
from generator.values.files import parse_values
from generator.values.release_name import Release
from roost.doctor.checks import INSTALLED, run_checks
from roost.doctor.evidence import path_of
from roost.doctor.findings import CheckOutcome, Finding
from roost.doctor.install import Install
from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.kube.pki import Certificate, make_authority, sign_leaf
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OPT_OUT_ANNOTATION, POLICY_REVISION_ANNOTATION, RELEASE_KEY
from tests.builders import HUB_RELEASE

PODS: Final = "/api/v1/namespaces/jhub/pods"
ENDPOINTS: Final = "/apis/discovery.k8s.io/v1/namespaces/jhub/endpointslices"
WEBHOOK: Final = (
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hub.jhub.roost-webhook"
)
WEBHOOKS: Final = WEBHOOK.rpartition("/")[0]
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/jhub/leases"
POLICIES: Final = "/apis/networking.k8s.io/v1/namespaces/jhub/networkpolicies"
APPS: Final = "/apis/apps/v1/namespaces/jhub"
QUOTAS: Final = "/api/v1/namespaces/jhub/resourcequotas"
CONFIG_MAPS: Final = "/api/v1/namespaces/jhub/configmaps"
LIMIT_RANGES: Final = "/api/v1/namespaces/jhub/limitranges"
NODES: Final = "/api/v1/nodes"
# The puller brings this image.
LISTED: Final = "singleuser: {image: {name: a/b, tag: '1'}}"
USER: Final = {"component": "singleuser-server"}


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def ca_bundle(made_at: float) -> str:
    """A caBundle, as in a webhook configuration, that is good for a day from then on."""
    return in_base64(make_authority("roost", made_at, 86400.0).certificate_pem)


def in_base64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


HOST: Final = "hub-roost-webhook.jhub.svc"
AUTHORITY: Final = make_authority("roost", datetime.now(UTC).timestamp(), 86400.0)
CA_BUNDLE: Final = in_base64(AUTHORITY.certificate_pem)
SECRETS: Final = "/api/v1/namespaces/jhub/secrets"


def leaf_secret(
    life_seconds: float = 80000.0,
    *,
    names: Sequence[str] = (HOST,),
    authority: Certificate = AUTHORITY,
) -> JSONObject:
    """A Secret with a certificate that ends so many seconds from now."""
    now = datetime.now(UTC).timestamp()
    leaf = sign_leaf(authority, names, now, life_seconds)
    return {"data": {"tls.crt": in_base64(leaf.certificate_pem)}}


LEAF: Final = leaf_secret()


class Cluster:
    """An API server with everything of an install that works; tests break it by `objects` and
    `lists`.
    """

    def __init__(self, values: str = "", release: Release = HUB_RELEASE) -> None:
        merged = parse_values(values.encode(), "values.yaml")
        rendered = [manifest.body for manifest in render(merged.values, release)]
        self.install = Install(cast("Client", self), release, merged.values, rendered)
        self.objects: dict[str, JSONObject] = {
            path_of(body): copy.deepcopy(body) for body in self.install.rendered
        }
        self.objects[f"/api/v1/namespaces/{release.namespace}"] = {}
        for body in self.install.of_kind("Deployment"):
            found = self.objects[path_of(body)]
            found["status"] = {"readyReplicas": found["spec"]["replicas"]}
        for name in ("scheduler", "controllers"):
            lease = self.objects.setdefault(f"{LEASES}/hub-roost-{name}", {})
            lease["spec"] = {"holderIdentity": "a", "renewTime": ago(2)}
        for entry in self.objects.get(WEBHOOK, {}).get("webhooks", []):
            entry["clientConfig"]["caBundle"] = CA_BUNDLE
        self.objects[f"{SECRETS}/hub-roost-webhook-leaf"] = LEAF
        kinds = ("deployments", "statefulsets", "daemonsets")
        self.lists: dict[str, list[JSONObject]] = {
            NODES: [],
            PODS: [],
            PODS.replace("/pods", "/events"): [],
            ENDPOINTS: [
                {"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}]}
            ],
            "/apis/scheduling.k8s.io/v1/priorityclasses": [],
            "/api/v1/pods": [],
            "/api/v1/namespaces": [],
            QUOTAS: [],
            CONFIG_MAPS: [],
            LIMIT_RANGES: [],
            WEBHOOKS: [],
            POLICIES: self.install.of_kind("NetworkPolicy"),
            **{f"{at}/{of}": [] for at in (APPS, "/apis/apps/v1") for of in kinds},
        }
        # What isn't JSON: metrics and logs, by path.
        self.texts: dict[str, list[str] | ApiError] = {
            "/metrics": ['kubernetes_feature_enabled{name="A",stage=""} 1']
        }
        # Kinds that the API server serves, by path.
        self.served: dict[str, set[str]] = {}
        for body in rendered:
            version, kind = str(body["apiVersion"]), str(body["kind"])
            self.served.setdefault(f"/{'apis' if '/' in version else 'api'}/{version}", set()).add(
                kind
            )
        # Of nodes' kubelets, by name.
        self.kubelets: dict[str, JSONObject | ClusterError] = {}
        # Why pods of Roost's own are refused.
        self.refusal: ApiError | None = None
        # What admission adds to a pod; an error: the pod is refused.
        self.admitted: JSONObject | ApiError = {
            "annotations": {POLICY_REVISION_ANNOTATION: self._revision() or "abc"}
        }
        self.scheduler = "hub.jhub.user"
        self.denied: set[str] = set()
        # Of accounts: `user verb group resource subresource namespace name`, without what is empty.
        self.rights: set[str] = set()
        # The API server's clock, as compared with this machine's.
        self.ahead_seconds = 0.0
        self.refused: set[str] = set()

    def clock_difference(self) -> float:
        return self.ahead_seconds

    def _revision(self) -> str:
        for body in self.install.of_kind("ConfigMap"):
            if text := (body.get("data") or {}).get(RELEASE_KEY):
                return sha256(text.encode()).hexdigest()[:12]
        return ""

    def get(
        self, path: str, _query: Mapping[str, Any] | None = None, /, *, read_seconds: float = 0.0
    ) -> JSONObject:
        if path in self.refused:
            raise ApiError(403, f"GET {path}: 403 Forbidden: nobody may")
        if path.endswith("/proxy/configz"):
            config = self.kubelets.get(path.split("/")[4], {})
            if isinstance(config, ClusterError):
                raise config
            return {"kubeletconfig": config}
        if path not in self.lists:
            raise ApiError(404, f"GET {path}: 404")
        return {"items": self.lists[path]}

    def try_apply(self, path: str, body: JSONObject, _manager: str, /) -> JSONObject:
        if path in self.refused:
            raise ApiError(403, f"PATCH {path}: 403 Forbidden: nobody may")
        applied: JSONObject = merged(self.objects[path], body)
        return applied

    def find(self, path: str, /) -> JSONObject | None:
        if path in self.served:
            return {"resources": [{"kind": kind} for kind in self.served[path]]}
        return {"items": self.lists[path]} if path in self.lists else self.objects.get(path)

    def lines(
        self, path: str, query: Mapping[str, Any], _silence_seconds: float, /
    ) -> Iterator[bytes]:
        text = self.texts[f"{path}?previous" if query.get("previous") else path]
        if isinstance(text, ApiError):
            raise text
        return iter([f"{line}\n".encode() for line in text])

    def create(self, path: str, body: JSONObject, /) -> JSONObject:
        if path.endswith("selfsubjectaccessreviews"):
            attributes = body["spec"]["resourceAttributes"]
            return {"status": {"allowed": attributes["resource"] not in self.denied}}
        if path.endswith("/subjectaccessreviews"):
            attributes = body["spec"]["resourceAttributes"]
            words = filter(None, [body["spec"]["user"], *attributes.values()])
            return {"status": {"allowed": " ".join(words) in self.rights}}
        assert path.endswith("?dryRun=All"), "nothing is created"
        if not path.endswith("/pods?dryRun=All"):
            return copy.deepcopy(body)
        if OPT_OUT_ANNOTATION in body["metadata"].get("annotations", {}):
            if self.refusal is not None:
                raise self.refusal
            return body
        if isinstance(self.admitted, ApiError):
            raise self.admitted
        metadata = {**body["metadata"], **self.admitted}
        return {
            **body,
            "metadata": metadata,
            "spec": {**body["spec"], "schedulerName": self.scheduler},
        }

    def said(self, check: str, *others: str) -> list[Finding]:
        """What a check found, while no other one found anything; others: they found something,
        too.
        """
        # An install reads a list once only.
        outcomes = run_checks(replace(self.install), INSTALLED)
        assert [
            outcome.check for outcome in outcomes if outcome.findings and outcome.check != check
        ] == [*others], outcomes
        return found(outcomes, check)

    def tells(
        self, check: str, severity: str, *evidence: str, fix: str = "", others: Sequence[str] = ()
    ) -> None:
        """The check's one finding says all this, and no check but these others finds anything."""
        ((seen, said, told, *_),) = self.said(check, *others)
        assert seen == severity
        assert [text for text in evidence if text not in said] == [], said
        assert fix in told, told


def merged(live: Any, body: Any) -> Any:
    """Live with what is applied, as the API server merges it: lists by name where all have one."""
    if isinstance(live, dict) and isinstance(body, dict):
        return {
            **live,
            **body,
            **{key: merged(live[key], body[key]) for key in live.keys() & body.keys()},
        }
    if (
        isinstance(live, list)
        and isinstance(body, list)
        and all(isinstance(one, dict) and "name" in one for one in body)
    ):
        there = {one.get("name"): one for one in live}
        return [merged(there.get(one["name"]), one) for one in body]
    return copy.deepcopy(body)


def found(outcomes: list[CheckOutcome], check: str) -> list[Finding]:
    return [
        finding for outcome in outcomes if outcome.check == check for finding in outcome.findings
    ]


def pod(name: str, annotations: Mapping[str, str] | None = None, **rest: Any) -> JSONObject:
    return {
        "metadata": {"name": name, "labels": USER, "annotations": dict(annotations or {})},
        **rest,
    }


def node(
    name: str, *, images: int = 3, age: float = 7200, taints: Sequence[str] = (), **labels: str
) -> JSONObject:
    return {
        "metadata": {"name": name, "creationTimestamp": ago(age), "labels": labels},
        "spec": {
            "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
            "providerID": "",
        },
        "status": {
            "images": [{"names": [f"x/{number}:1"]} for number in range(images)],
            "nodeInfo": {
                "containerRuntimeVersion": "containerd://2.1.4",
                "kubeletVersion": "v1.37.2",
            },
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


PLACED: Final = {POLICY_REVISION_ANNOTATION: "abc"}
