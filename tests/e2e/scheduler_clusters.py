"""Draw small clusters and pods that touch every rule of kube-scheduler that the model knows;
manifests from a seed.

Owns chance. What is drawn is accepted by an API server but for a few pods (a host port twice,
requests above the pod's own); whoever creates them leaves those out.
"""

from random import Random
from typing import Any, NamedTuple

from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import PREFERRED, REQUIRED

MIB = 1024**2
ZONES = ("z1", "z2", "z3")
APPS = ("a", "b", "c")
TIERS = ("x", "y")
TEAMS = ("red", "blue")
PURPOSES = ("user", "build", "core")
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 (a pod's hostIP; nothing is bound here)
GPU = "example.com/gpu"
STATEFUL_SET = "placeholders"
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "name": STATEFUL_SET,
    "uid": "u",
    "controller": True,
}
PORT = {"port": 80}
RUNTIME_CLASS = "heavy"
# Name, value and whether such pods pre-empt.
PRIORITIES = (
    ("low", -10, True),
    ("lower", -20, True),
    ("middle", 5, True),
    ("high", 100, True),
    ("meek", 200, False),
)
IMAGES = {
    "quay.io/jupyter/base:1": 500 * MIB,
    "quay.io/jupyter/science:2": 3000 * MIB,
    "registry:5000/lab:3": 1200 * MIB,
    "docker.io/library/small:latest": 20 * MIB,
    "busy/box@sha256:" + "a" * 64: 800 * MIB,
    "plain:latest": 2000 * MIB,
    "tiny/one:1": 24 * MIB,
}
# As pods write them: some are never found on a node.
WRITTEN_IMAGES = (
    *IMAGES,
    "plain",
    "docker.io/library/small",
    "small",
    "quay.io/jupyter/base",
    "absent:1",
)


class Mood(NamedTuple):
    """What kind of cluster it is; so that each rule gets its turn to decide."""

    fewest_nodes: int
    most_nodes: int
    # How often what keeps pods off nodes is drawn: 1 is often.
    strictness: float
    # Share of nodes that equal each other, so that totals tie.
    alike: float
    # Pods on a node at the beginning, at most, and of how many the node has room.
    most_pods: int
    room: tuple[int, int]
    # Share of the pods that have a priority; where it is all, those there at first have low ones,
    # the others high ones.
    prioritised: float


MOODS = (
    Mood(30, 70, 1.0, 0.2, 4, (6, 14), 0.6),  # varied: most pods fit in few places
    Mood(70, 95, 0.15, 0.7, 3, (10, 30), 0.3),  # roomy: long score tables, ties
    Mood(15, 30, 0.08, 0.3, 10, (6, 9), 1.0),  # crowded: pre-emption
)


class Drawing:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.mood = MOODS[seed % len(MOODS)]
        nodes = self.number(self.mood.fewest_nodes, self.mood.most_nodes)
        self.node_names = [f"n{index:03d}" for index in range(nodes)]
        self.namespaces = {
            f"world-{name}": {"team": self.one(TEAMS), "stage": name}
            for name in ("one", "two", "three")
        }

    def one(self, choices: Any) -> Any:
        return self._random.choice(choices)

    def happens(self, probability: float) -> bool:
        return self._random.random() < probability

    def hinders(self, probability: float) -> bool:
        """As `happens`, for what keeps pods off nodes."""
        return self.happens(probability * self.mood.strictness)

    def number(self, lowest: int, highest: int) -> int:
        return self._random.randint(lowest, highest)

    def some(self, choices: Any, most: int) -> list[Any]:
        choices = list(choices)
        return self._random.sample(choices, self.number(0, min(most, len(choices))))

    # Nodes

    def node(self, name: str) -> JSONObject:
        """Arguments of FakeNodes.create."""
        if self.happens(self.mood.alike):
            return {
                "cpu": "8",
                "memory": "16Gi",
                "pods": self.mood.room[1],
                "labels": {"purpose": "user", "gen": "5"},
            }
        labels = {"purpose": self.one(PURPOSES), "gen": str(self.number(1, 9))}
        if self.happens(0.9):
            labels[ZONE] = self.one(ZONES)
        if self.happens(0.7):
            labels["rack"] = self.one("rst")
        if self.happens(0.05):
            labels[HOSTNAME] = f"host-of-{name}"
        return {
            "cpu": self.one(["2", "4", "3900m", "8"]),
            "memory": self.one(["4Gi", "8Gi", "7777777Ki", "16G"]),
            "pods": self.number(*self.mood.room),
            "labels": labels,
            "taints": self.taints(),
            "images": self.images(),
            "extra_resources": {GPU: str(self.number(1, 4))} if self.happens(0.3) else {},
        }

    def taints(self) -> list[str]:
        effects = ["PreferNoSchedule", "PreferNoSchedule"]
        if self.happens(self.mood.strictness):
            effects += ["NoSchedule", "NoExecute"]
        keys = self.some(["dirty", "old", "gpu"], 2)
        return [f"{key}={self.one('12')}:{self.one(effects)}" for key in keys if self.happens(0.4)]

    def images(self) -> dict[str, int]:
        # Sizes differ a little between nodes, as they do after another unpacking.
        return {
            name: size + self.number(0, 3) * 4096
            for name, size in IMAGES.items()
            if self.happens(0.4)
        }

    # Pods

    def pod(self, name: str, scheduler_name: str, *, at_first: bool = False) -> JSONObject:
        """A pod; at_first: one that is there from the beginning."""
        if self.happens(0.1):
            return self._plain_pod(name, scheduler_name)
        spec: JSONObject = {
            "schedulerName": scheduler_name,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [self._container(f"c{index}") for index in range(self.one([1, 1, 1, 2]))],
        }
        if self.happens(0.25):
            spec["initContainers"] = [
                self._init_container(f"i{index}") for index in range(self.one([1, 2, 3]))
            ]
        if self.happens(0.1):
            spec["resources"] = {"requests": self._pick({"cpu": "6", "memory": "12Gi"}, 0.7)}
        if self.happens(0.1):
            spec["runtimeClassName"] = RUNTIME_CLASS
        if self.hinders(0.3):
            spec["nodeSelector"] = self.one(
                [{"purpose": self.one(PURPOSES)}, {ZONE: self.one(ZONES)}, {"gen": "5"}]
            )
        if tolerations := [self._toleration() for _ in range(self.one([0, 0, 1, 2, 3]))]:
            spec["tolerations"] = tolerations
        if affinity := self._affinity():
            spec["affinity"] = affinity
        if self.happens(0.25):
            spec["topologySpreadConstraints"] = self._spread()
        if self.happens(self.mood.prioritised):
            spec["priorityClassName"] = self._priority(at_first=at_first)
        if self.mood.prioritised == 1 and not at_first and self.happens(0.5):
            spec["containers"][0]["resources"] = {
                "requests": {"cpu": self.one("123"), "memory": "2Gi"}
            }
            spec["priorityClassName"] = self.one(["middle", "high"])
        if self.happens(0.1):
            spec["volumes"] = [{"name": "model", "image": {"reference": self.one(WRITTEN_IMAGES)}}]
        metadata: JSONObject = {
            "name": name,
            "namespace": self.one(list(self.namespaces)),
            "labels": self.labels(),
        }
        if self.happens(0.2):
            metadata["ownerReferences"] = [OWNER]
        return {"metadata": metadata, "spec": spec}

    def _priority(self, *, at_first: bool) -> str:
        names = [
            name
            for name, value, _ in PRIORITIES
            if self.mood.prioritised < 1 or not at_first or value < 5
        ]
        return str(self.one(names))

    def _plain_pod(self, name: str, scheduler_name: str) -> JSONObject:
        """One without any wish, for which many nodes are equal."""
        requests = {"cpu": "100m", "memory": "64Mi"}
        containers = [{"name": "c", "image": "absent:1", "resources": {"requests": requests}}]
        spec = {
            "schedulerName": scheduler_name,
            "terminationGracePeriodSeconds": 0,
            "containers": containers,
        }
        return {"metadata": {"name": name, "namespace": "world-one"}, "spec": spec}

    def labels(self) -> dict[str, str]:
        return self._pick(
            {"app": self.one(APPS), "tier": self.one(TIERS), "revision": self.one("12")}, 0.8
        )

    def _pick(self, items: JSONObject, probability: float) -> JSONObject:
        return {key: value for key, value in items.items() if self.happens(probability)}

    def _container(self, name: str) -> JSONObject:
        cpu = self.one(["50m", "100m", "0.25", "1", "1500m", "0", "333m"])
        memory = self.one(["64Mi", "200M", "1Gi", "2.5Gi", "0", "123456789"])
        requests = self._pick({"cpu": cpu, "memory": memory}, 0.7)
        if self.happens(0.1):
            requests["ephemeral-storage"] = self.one(["1Gi", "40Gi"])
        limits = {GPU: self.one(["0", "1", "2"])} if self.happens(0.1) else {}
        resources = {"requests": {**requests, **limits}, "limits": limits}
        container: JSONObject = {
            "name": name,
            "image": self.one(WRITTEN_IMAGES),
            "resources": resources,
        }
        if self.happens(0.12):
            number, protocol = self.one([8080, 8081]), self.one(["TCP", "UDP"])
            port: JSONObject = {"containerPort": 80, "hostPort": number, "protocol": protocol}
            if self.happens(0.4):
                port["hostIP"] = self.one(["127.0.0.1", "127.0.0.2", ALL_ADDRESSES])
            container["ports"] = [port]
        return container

    def _init_container(self, name: str) -> JSONObject:
        container = self._container(name)
        if self.happens(0.4):
            container["restartPolicy"] = "Always"
        else:
            container.pop("ports", None)
        return container

    def _toleration(self) -> JSONObject:
        if self.happens(0.1):
            return {"operator": "Exists"}
        if self.happens(0.15):
            return {
                "key": "node.kubernetes.io/unschedulable",
                "operator": "Exists",
                "effect": "NoSchedule",
            }
        found: JSONObject = {
            "key": self.one(["dirty", "old", "gpu"]),
            "operator": self.one(["Exists", "Equal"]),
        }
        if found["operator"] == "Equal":
            found["value"] = self.one("12")
        if self.happens(0.6):
            found["effect"] = self.one(["NoSchedule", "PreferNoSchedule", "NoExecute"])
        return found

    # Affinity

    def _affinity(self) -> JSONObject:
        found: JSONObject = {}
        node: JSONObject = {}
        if self.hinders(0.2):
            terms = [self._node_term() for _ in range(self.one([1, 1, 2]))]
            node[REQUIRED] = {"nodeSelectorTerms": terms}
        if self.happens(0.35):
            node[PREFERRED] = [
                {"weight": self.number(1, 100), "preference": self._node_term()}
                for _ in range(self.number(1, 3))
            ]
        if node:
            found["nodeAffinity"] = node
        for kind, required in (("podAffinity", 0.1), ("podAntiAffinity", 0.12)):
            of_kind: JSONObject = {}
            if self.hinders(required):
                of_kind[REQUIRED] = [self._pod_term() for _ in range(self.one([1, 1, 2]))]
            if self.happens(0.3):
                of_kind[PREFERRED] = [
                    {"weight": self.number(1, 100), "podAffinityTerm": self._pod_term()}
                    for _ in range(self.one([1, 2]))
                ]
            if of_kind:
                found[kind] = of_kind
        return found

    def _node_term(self) -> JSONObject:
        if self.happens(0.06):
            return {"matchFields": [self._field("In")]}
        if self.happens(0.03):
            return {"matchFields": [self._field("In"), self._field("In")]}
        expressions = [
            {
                "key": "purpose",
                "operator": self.one(["In", "NotIn"]),
                "values": self.some(PURPOSES, 2) or ["user"],
            },
            {"key": "gen", "operator": self.one(["Gt", "Lt"]), "values": [str(self.number(2, 8))]},
            {"key": ZONE, "operator": self.one(["In", "NotIn"]), "values": [self.one(ZONES)]},
            {"key": "rack", "operator": self.one(["Exists", "DoesNotExist"])},
        ]
        term: JSONObject = {
            "matchExpressions": self._random.sample(expressions, self.one([1, 1, 2]))
        }
        if self.happens(0.1):
            term["matchFields"] = [self._field("NotIn")]
        return term

    def _field(self, operator: str) -> JSONObject:
        return {"key": "metadata.name", "operator": operator, "values": [self.one(self.node_names)]}

    def _pod_term(self) -> JSONObject:
        term: JSONObject = {"topologyKey": self.one([HOSTNAME, HOSTNAME, ZONE, "rack"])}
        if self.happens(0.95):
            term["labelSelector"] = self._label_selector()
        if self.happens(0.25):
            term["namespaces"] = self.some(self.namespaces, 2) or ["world-one"]
        if self.happens(0.25):
            team = {"matchLabels": {"team": self.one(TEAMS)}}
            term["namespaceSelector"] = self.one([{}, team, {"matchLabels": {"no": "ne"}}])
        return term

    def _label_selector(self) -> JSONObject:
        selector: JSONObject = self.one(
            [
                {},
                {"matchLabels": {"app": self.one(APPS)}},
                {"matchLabels": {"app": self.one(APPS), "tier": self.one(TIERS)}},
                {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
                {
                    "matchExpressions": [
                        {"key": "tier", "operator": self.one(["Exists", "DoesNotExist"])}
                    ]
                },
                {
                    "matchExpressions": [
                        {"key": "app", "operator": "NotIn", "values": [self.one(APPS)]}
                    ]
                },
            ]
        )
        return selector

    def _spread(self) -> list[JSONObject]:
        found = []
        for key in self.some([HOSTNAME, ZONE, "rack"], 2) or [ZONE]:
            constraint: JSONObject = {
                "topologyKey": key,
                "maxSkew": self.number(1, 4),
                "whenUnsatisfiable": "DoNotSchedule" if self.hinders(0.33) else "ScheduleAnyway",
            }
            if self.happens(0.9):
                constraint["labelSelector"] = self._label_selector()
            if self.happens(0.2):
                constraint["nodeAffinityPolicy"] = self.one(["Honor", "Ignore"])
            if self.happens(0.2):
                constraint["nodeTaintsPolicy"] = self.one(["Honor", "Ignore"])
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" and self.happens(0.2):
                constraint["minDomains"] = self.number(1, 4)
            if "labelSelector" in constraint and self.happens(0.15):
                constraint["matchLabelKeys"] = ["revision"]
            found.append(constraint)
        return found

    # What else is there

    def budgets(self) -> list[tuple[JSONObject, int]]:
        """PodDisruptionBudgets, each with the disruptions that its status allows."""
        found = []
        for index in range(self.number(1, 4)):
            namespace = self.one(list(self.namespaces))
            spec = {"minAvailable": 1, "selector": self._label_selector()}
            body = manifest(
                "policy/v1", "PodDisruptionBudget", f"budget-{index}", namespace, spec=spec
            )
            found.append((body, self.number(0, 2)))
        return found

    def services(self) -> list[JSONObject]:
        return [
            manifest(
                "v1",
                "Service",
                f"service-{app}",
                namespace,
                spec={"selector": {"app": app}, "ports": [PORT]},
            )
            for namespace in self.namespaces
            for app in self.some(APPS, 1)
        ]

    def stateful_set(self, namespace: str) -> JSONObject:
        labels = {"app": self.one(APPS)}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {
            "selector": {"matchLabels": labels},
            "serviceName": STATEFUL_SET,
            "template": template,
        }
        return manifest("apps/v1", "StatefulSet", STATEFUL_SET, namespace, spec=spec)


def manifest(version: str, kind: str, name: str, namespace: str = "", **body: Any) -> JSONObject:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


def cluster_wide() -> list[JSONObject]:
    overhead = {"podFixed": {"cpu": "120m", "memory": "77Mi"}}
    policies = {True: "PreemptLowerPriority", False: "Never"}
    return [
        *(
            manifest(
                "scheduling.k8s.io/v1",
                "PriorityClass",
                name,
                value=value,
                preemptionPolicy=policies[preempts],
            )
            for name, value, preempts in PRIORITIES
        ),
        manifest(
            "node.k8s.io/v1",
            "RuntimeClass",
            RUNTIME_CLASS,
            handler=RUNTIME_CLASS,
            overhead=overhead,
        ),
    ]
