"""Writes of the controllers' account, drawn from one table (tests/data/attacks.yaml), and an oracle
that knows its own.

The table says what is tried, and never whether it is refused. The oracle knows what the programs
write and their bounds, not the policies' text: it judges what the API server would store, or what
was sent where a policy refused it. One run again: ROOST_ATTACK_SEED=7.
"""

import copy
import json
import os
import random
import re
import secrets
import sys
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from unittest.mock import Mock

import yaml

from roost.controllers.contract.actions import Notice
from roost.controllers.runtime.events import EventWriter
from roost_core.kube.leader_election import Leadership
from roost_core.kube.webhook_secrets import SharedSecret
from tests.harness.api import Api, ApiError
from tools.root import ROOT

Body = Any
TABLE: Mapping[str, Any] = yaml.safe_load((ROOT / "tests/data/attacks.yaml").read_text())
KINDS = tuple(TABLE["kinds"])
SERVERS, OPEN_PARTS = TABLE["servers"], TABLE["open"]
ACCOUNT = "hub-roost-controllers"
OWNER = {"apiVersion": "v1", "kind": "ServiceAccount", "name": ACCOUNT, "uid": "1"}
OWN = {"app.kubernetes.io/part-of": "roost"}
DENIED = "ValidatingAdmissionPolicy"
# Of each documented reason of an Event: the kind of object that it is about.
NAMES = (ROOT / "docs/reference/names.md").read_text()
REASONS = {
    reason: {"node": "Node", "StatefulSet": "StatefulSet", "ConfigMap": "ConfigMap"}.get(on, "Pod")
    for reason, on in re.findall(
        r"^\| `([A-Z]\w+)` \| ([\w' ]+) \| (?:Normal|Warning)", NAMES, re.MULTILINE
    )
}
# Placeholders and pullers have no page that users see.
WITHOUT_PAGE = {
    "PlaceholderMovedElsewhere": "hub-roost-placeholder-learns-1",
    "CannotPullImage": "hub-roost-puller-x",
}


class Attempt(NamedTuple):
    """One request. at: the changes in its body, as they stand in the table."""

    kind: str
    method: str
    path: str
    old: Body
    sent: Body
    at: tuple[str, ...] = ()


def written(write: Callable[[Any], object]) -> Body:
    """What a part of the programs would create, where nothing is there."""
    client = Mock()
    client.find.return_value = None
    write(client)
    return client.create.call_args.args[1]


def change(body: Body, path: str, to: Body) -> None:
    """Set, extend (`more`) or take away (`gone`) what is at a path; past the end of a list nothing
    is changed.
    """
    *parents, last = (inside or plain for inside, plain in re.findall(r"\(([^)]*)\)|([^.]+)", path))
    for key in parents:
        if isinstance(body, list) and int(key) >= len(body):
            return
        body = (
            body[int(key)]
            if isinstance(body, list)
            else body.setdefault(key, [] if key == "webhooks" else {})
        )
    at: Any = int(last) if isinstance(body, list) else last
    if to == "gone" and isinstance(body, list):
        del body[at : at + 1]
    elif to == "gone":
        body.pop(at, None)
    elif isinstance(to, dict) and to.keys() == {"more"}:
        more, before = to["more"], body.get(at)
        body[at] = (
            [*(before or []), *more] if isinstance(more, list) else {**(before or {}), **more}
        )
    else:
        body[at] = to


def without(body: Body, *paths: str) -> dict[str, Any]:
    left: dict[str, Any] = copy.deepcopy(body)
    for path in paths:
        change(left, path, "gone")
    return left


def size(body: Body) -> int:
    return len(json.dumps(body))


def of(body: Body, key: str) -> Body:
    """A part of its metadata."""
    return body.get("metadata", {}).get(key) or (
        [] if key in ("finalizers", "ownerReferences") else {}
    )


def shown(place: str, to: Body) -> str:
    return f"{place}: {json.dumps(to)[:100]}"


class Attacks:
    """Draws, sends and judges. names: of namespaces, besides the table's. puller: a pod as the
    programs make it.
    """

    def __init__(self, account: Api, admin: Api, names: Mapping[str, str], puller: Body) -> None:
        self.account, self.admin, self.puller = account, admin, puller
        self.names = {**names, "volume": puller["spec"]["volumes"][0]["name"]}
        for key, name in TABLE["names"].items():
            self.names[key] = self.expanded(name)
        namespace, leaf = names["namespace"], "hub-roost-webhook-leaf"
        pair = {"tls.crt": b"a", "tls.key": b"a"}
        self._bodies = self.expanded(TABLE["made"]) | {
            "puller": puller,
            "lease": written(
                lambda to: Leadership(to, namespace, ACCOUNT, "me", owner=lambda: OWNER).try_once()
            ),
            "leaf": written(
                lambda to: SharedSecret(to, namespace, leaf, owner=lambda: OWNER).write(None, pair)
            ),
        }
        # As it would be stored.
        self._stored_puller = puller
        self.faults: list[str] = []
        # Rows that decided nothing by themselves yet, such as a typing error's.
        self.untold: set[str] = set()
        self.counts: Counter[tuple[str, str]] = Counter()

    # Draws

    def attempts(self, kind: str, chance: random.Random, count: int) -> Iterator[Attempt]:
        """Each request as it begins, each change by itself where that is legitimate, and then
        any.
        """
        rows = [
            (path, to) for path, values in TABLE["kinds"][kind]["changes"].items() for to in values
        ]
        self.untold |= {f"{kind}: {shown(*row)}" for row in rows}
        rows += pod_fields(self.admin) if kind == "pods" else []
        requests = {
            text: self.expanded(text).split(" ") for text in TABLE["kinds"][kind]["requests"]
        }
        found = {
            text: {} if how == "POST" else self.admin.find(path)
            for text, (how, path) in requests.items()
        }

        def attempt(text: str, *drawn: tuple[str, Body]) -> Attempt:
            body = self.body(
                TABLE["kinds"][kind]["requests"][text], requests[text][1], chance, found[text]
            )
            if kind == "nodes" and body:
                body["metadata"].pop("resourceVersion", None)
            for place, to in drawn:
                change(body, self.expanded(place), self.expanded(to))
            how, path = requests[text]
            return Attempt(kind, how, path, found[text], body, tuple(shown(*row) for row in drawn))

        for text in requests:
            plains = [attempt(text) for _ in range(20 if kind == "events" else 1)]
            yield from plains
            if plains[0].sent and (
                "theirs" in text or any(self.may(plain, plain.sent) for plain in plains)
            ):
                yield from (attempt(text, row) for row in rows)
        changing = [text for text in requests if not text.startswith("DELETE")]
        for _ in range(count):
            yield attempt(
                chance.choice(changing),
                *chance.sample(rows, min(len(rows), chance.choice((1, 2, 2, 3, 4)))),
            )

    def body(self, base: str, path: str, chance: random.Random, old: Body = None) -> Body:
        """What a request begins with. base: its name in the table."""
        at = path.split("/")
        if base == "event":
            return self._event(at[4], chance)
        body = copy.deepcopy(old if base == "stored" else self._bodies.get(base))
        return (
            {**body, "metadata": {"name": at[6], "namespace": at[4]}}
            if base == "eviction"
            else body
        )

    def _event(self, namespace: str, chance: random.Random) -> Body:
        """One of those that the programs write, about what is there."""
        kind = (
            "Node"
            if namespace == "default"
            else chance.choice(("Pod", "Pod", "ConfigMap", "StatefulSet"))
        )
        reason = chance.choice([reason for reason, about in REASONS.items() if about == kind])
        says = "Your server's image is being downloaded; usually 1.5 to 4 minutes."
        place, name = "" if kind == "Node" else namespace, WITHOUT_PAGE.get(reason, "any")
        notice = Notice(kind, place, name, "1", reason, says, chance.random() < 0.5)
        return written(lambda to: EventWriter(to, "me", hub="hub").write(notice))

    def expanded(self, value: Body) -> Body:
        """The table's short forms written out."""
        match value:
            case str():
                return re.sub(r"\{(\w+)\}", lambda found: self.names.get(found[1], found[0]), value)
            case {"text": int(length)}:
                return "x" * length
            case {"keys": int(count), **rest}:
                return {
                    self.expanded(f"{rest.get('of', 'a-')}{index}"): rest.get("is", "b")
                    for index in range(count)
                }
            case {"times": int(count), "of": one}:
                return [self.expanded(one)] * count
            case {"pem": int(times)}:
                return b64encode(b64decode(self.names["pem"]) * times).decode()
            case dict():
                return {self.expanded(key): self.expanded(one) for key, one in value.items()}
            case list():
                return [self.expanded(one) for one in value]
        return value

    # Verdicts

    def run(self, kinds: tuple[str, ...] = KINDS, count: int = 100) -> None:
        """Send everything, as dry runs, and judge it."""
        seed = int(os.environ.get("ROOST_ATTACK_SEED") or secrets.randbits(32))
        with ThreadPoolExecutor(4) as pool:
            for kind in kinds:
                drawn = self.attempts(kind, random.Random(f"{seed} {kind}"), count)
                answers = [*pool.map(lambda one: (one, *self.send(one)), drawn)]
                plain = (
                    stored
                    for one, _, stored, said in answers
                    if not (one.at or said) and one.method == "POST"
                )
                self._stored_puller = next(plain, self.puller) if kind == "pods" else self.puller
                for answer in answers:
                    self._judge(*answer)
        sys.stdout.write(f"ROOST_ATTACK_SEED={seed} {dict(self.counts)}\n")

    def send(self, attempt: Attempt) -> tuple[str, Body, str]:
        """Whether it was taken, refused by a policy, or unfit for any; what would be stored; what
        was said.
        """
        try:
            stored = self.account.request(
                attempt.method, attempt.path, attempt.sent, {"dryRun": "All"}
            )
        except ApiError as error:
            # Nothing there to evict, or a name that is taken: said after the policies.
            passed = error.status == 429 or (
                attempt.method == "POST" and error.status in (404, 409)
            )
            verdict = "refused" if DENIED in str(error) else "taken" if passed else "unfit"
            return verdict, attempt.sent, str(error)
        return "taken", stored, ""

    def _judge(self, attempt: Attempt, verdict: str, stored: Body, said: str) -> None:
        self.counts[attempt.kind, verdict] += 1
        if verdict == "unfit":
            return
        self.untold -= {f"{attempt.kind}: {at}" for at in attempt.at if len(attempt.at) == 1}
        if (verdict == "taken") != self.may(attempt, stored):
            wrong = "though it is not theirs" if verdict == "taken" else "though it is theirs"
            self.faults.append(
                f"{verdict}, {wrong}: {attempt.method} {attempt.path} {attempt.at} {said[:300]}"
            )

    # The oracle

    def may(self, attempt: Attempt, new: Body) -> bool:
        """Whether the programs could have written it."""
        theirs, parts = TABLE["kinds"][attempt.kind]["theirs"], attempt.path.split("/")
        # /api/v1/namespaces/hub/pods/hub-0, or /apis/apps/v1/... with a place more
        place = 3 if parts[1] == "api" else 4
        namespace = parts[place + 1] if parts[place] == "namespaces" else ""
        name = (
            "".join(parts[place + 3 if namespace else place + 1 :][:1])
            or of(new or {}, "name")
            or ""
        )
        return (
            attempt.method in theirs["methods"]
            and re.fullmatch(theirs["names"], name) is not None
            and (namespace in ("", self.names["namespace"]) or attempt.kind == "events")
            and size(new) <= theirs["bytes"]
            and (
                attempt.method == "DELETE"
                or getattr(self, f"_{attempt.kind}", lambda *_: True)(attempt.old, new, namespace)
            )
        )

    def _nodes(self, old: Body, new: Body, _: str) -> bool:
        pulled, attract, taint = (self.names[key] for key in ("pulled", "attract", "taint"))
        before, labels = of(old, "labels"), of(new, "labels")
        own = {key: value for key, value in labels.items() if key.startswith((pulled, attract))}
        said = {
            (key.startswith(pulled), value)
            for key, value in own.items()
            if before.get(key) != value
        }
        marks = [key for key in before | labels if key.startswith((pulled, attract))]
        parts = [*SERVERS, "spec.taints", *(f"metadata.labels.({key})" for key in marks)]
        taints, were = new["spec"].get("taints") or [], old["spec"].get("taints") or []
        return (
            without(old, *parts) == without(new, *parts)
            and [one for one in taints if one["key"] != taint]
            == [one for one in were if one["key"] != taint]
            and all(one in were for one in taints)
            and said <= {(True, "true"), (True, "pulling"), (True, "open"), (False, "true")}
            and (len(own) <= 512 or own.keys() <= before.keys())
            and size(of(new, "managedFields")) <= 2**18
        )

    def _pods(self, _old: Body, new: Body, _: str) -> bool:
        sent, spec = self.puller, new["spec"]
        plain = self._stored_puller if "status" in new else sent
        asked = (spec["containers"] or [{}])[0].get("resources", {})
        free = (
            "policies.kyverno.io/",
            "openshift.io/",
            "kubernetes.io/limit-ranger",
            "roost.hub.jupyter.org/popular-",
        )
        team = {"example.org/team": "hubs"}
        # Without image volumes the image is that of the container, which runs the pause.
        parts = (
            SERVERS
            + OPEN_PARTS
            + ["spec.containers.0.image"] * ("emptyDir" in sent["spec"]["volumes"][0])
        )
        return (
            without(new, *parts) == without(plain, *parts)
            and of(sent, "labels").items()
            <= of(new, "labels").items()
            <= (of(sent, "labels") | team).items()
            and all(
                item in of(sent, "annotations").items() or item[0].startswith(free)
                for item in of(new, "annotations").items()
            )
            and [(one["kind"], one["name"]) for one in of(new, "ownerReferences")]
            in ([], [("ServiceAccount", ACCOUNT)])
            and {secret.get("name") for secret in spec.get("imagePullSecrets", [])}
            <= {"registry", "users"}
            and spec.get("activeDeadlineSeconds", 1e9) <= 3600
            and spec.get("terminationGracePeriodSeconds", 1e9) <= 30
            and asked.get("requests", {}).keys() == {"cpu", "memory"}
            and set(asked["requests"].values()) <= {"0", "250m", "512Mi"}
            and asked.get("limits", {}).keys() <= {"cpu", "memory"}
        )

    def _events(self, old: Body, new: Body, namespace: str) -> bool:
        if "involvedObject" not in new:
            return False
        kind, name, message = (
            new["involvedObject"].get("kind"),
            new["involvedObject"].get("name", ""),
            new.get("message"),
        )
        own = namespace == self.names["namespace"]
        places = {"Node": ["default"], "StatefulSet": [self.names["namespace"]]}
        has_page = kind == "Pod" and not (
            own and name.startswith(("hub-roost-placeholder-", "hub-roost-puller-"))
        )
        plain = re.fullmatch(
            r"([A-Za-z0-9 ,;()'-]|\.(?= |$)|(?<=\d)\.(?=\d))+", message or "", re.ASCII
        )
        return (
            namespace in places.get(kind, [self.names["namespace"], self.names["hub"]])
            # An Event without a kind is of no reason of theirs.
            and REASONS.get(new.get("reason"), "") == kind
            and new.get("type") in ("Normal", "Warning")
            and of(new, "labels") == OWN
            and (not old or of(old, "labels") == OWN)
            and not any(of(new, key) for key in ("annotations", "finalizers", "ownerReferences"))
            and new.get("source")
            == {"component": new.get("reportingComponent")}
            == {"component": "roost-controllers"}
            and not any(new.get(key) for key in ("related", "series", "action"))
            and len(message or "") <= (200 if has_page else 1024)
            and (plain is not None or not has_page)
        )

    def _keeps_metadata(self, old: Body, new: Body) -> bool:
        """Own labels and the controllers' account as the owner, besides what was there."""
        owners, were = of(new, "ownerReferences"), of(old, "ownerReferences")
        return (
            of(new, "labels").items() <= (of(old, "labels") | OWN).items()
            and of(new, "annotations").items() <= of(old, "annotations").items()
            and of(new, "finalizers") == of(old, "finalizers")
            and all(
                owner in were or (owner["kind"], owner["name"]) == ("ServiceAccount", ACCOUNT)
                for owner in owners
            )
        )

    def _leases(self, old: Body, new: Body, _: str) -> bool:
        return (
            self._keeps_metadata(old, new) and (new["spec"].get("leaseDurationSeconds") or 0) <= 300
        )

    def _configmaps(self, old: Body, new: Body, _: str) -> bool:
        return without(old, *SERVERS, "data", "binaryData") == without(
            new, *SERVERS, "data", "binaryData"
        )

    def _scales(self, old: Body, new: Body, _: str) -> bool:
        most = {"hub-roost-placeholder-default": 7, "hub-roost-placeholder-learns": 1, ACCOUNT: 2}
        return bool(new["spec"].get("replicas", 0) <= most[old["metadata"]["name"]])

    def _webhooks(self, old: Body, new: Body, _: str) -> bool:
        bundles = [
            f"webhooks.{number}.clientConfig.caBundle" for number in range(len(old["webhooks"]))
        ]
        longest = max(
            (
                len(webhook["clientConfig"].get("caBundle", ""))
                for webhook in new.get("webhooks") or []
            ),
            default=0,
        )
        is_small = longest <= 2**16 and size(of(new, "managedFields")) <= 2**17
        return is_small and without(old, *SERVERS, *bundles) == without(new, *SERVERS, *bundles)

    def _secrets(self, old: Body, new: Body, _: str) -> bool:
        keys = (
            {"tls.crt", "tls.key"}
            if of(new, "name").endswith("leaf")
            else {"ca.crt", "ca.key", "previous-ca.crt"}
        )
        held = {*(new.get("data") or {}), *(new.get("stringData") or {})} - {"previous-ca.key"}
        return (
            held <= keys
            and new.get("type", "Opaque") == "Opaque"
            and bool(new.get("immutable")) == bool(old.get("immutable"))
            and self._keeps_metadata(old, new)
        )


def pod_fields(admin: Api) -> list[tuple[str, Body]]:
    """A value for each field that the API server knows of pods and containers, by its own
    schemas.
    """
    schemas = admin.get("/openapi/v3/api/v1")["components"]["schemas"]

    def value(schema: Body) -> Body:
        for part in schema.get("allOf", ()):
            return value(part)
        if "$ref" in schema:
            return value(schemas[schema["$ref"].rpartition("/")[2]])
        match schema.get("type"):
            case "object" if "additionalProperties" in schema:
                return {"a": value(schema["additionalProperties"])}
            case "object":
                return {
                    name: value(schema["properties"][name]) for name in schema.get("required", ())
                }
            case "array":
                return [value(schema["items"])]
        return {"boolean": True, "integer": 1}.get(
            schema.get("type", ""), schema.get("enum", ["a"])[0]
        )

    return [
        (f"{at}.{name}", value(schema))
        for kind, at in (("PodSpec", "spec"), ("Container", "spec.containers.0"))
        for name, schema in schemas[f"io.k8s.api.core.v1.{kind}"]["properties"].items()
        if name not in ("serviceAccount", "containers", "name")
    ]
