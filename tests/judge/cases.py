"""What is played without Roost and with it: machines, profiles, arrivals, troubles; written down or
drawn from a seed.

Owns chance and shapes, no cluster. Pods are KubeSpawner's, values are zero-to-jupyterhub's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from random import Random
from typing import NamedTuple

from roost_core.objects.fields import JSONObject
from tools.root import ROOT

GPU = "nvidia.com/gpu"
GPU_TAINT = f"{GPU}=present:NoSchedule"
TOLERATES_GPU = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
DEDICATED_TAINT = "hub.jupyter.org/dedicated=user:NoSchedule"
PURPOSE = {"hub.jupyter.org/node-purpose": "user"}
BASE = "quay.io/jupyter/scipy-notebook:2026-11-03"
OTHER = "quay.io/jupyter/pytorch-notebook:cuda12"
IMAGE_BYTES = 3_000_000_000
GROUP_LABEL = "example.com/node-group"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
# The hub's namespace, and another team's.
NAMESPACE = "jhub"
TEAM = "team"
# Labels of the namespaces whose hubs share nodes.
SHARED = {"pool": "users"}
# Labels of the namespaces whose hubs a release serves, where it serves several; and some of those.
SERVED = {"hub.jupyter.org/users": "true"}
OTHER_HUBS = ("physics", "biology")
# The name and the namespace of a second release.
BESIDE = "beside"
BUILD = "build"
# The first arrival's moment, as values have it.
START = "2027-01-15T08:00"
# A hub's own spawn as zero-to-jupyterhub 4.4 makes it.
_POD = (ROOT / "lab" / "benchmarks" / "pods" / "user.json").read_text()


class Fault(StrEnum):
    """What becomes of Roost's controllers in the middle."""

    NONE = "none"
    KILLED = "killed"
    HUNG = "hung"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Machines of one kind: those there from the beginning, and how many an autoscaler may have."""

    name: str
    cpu: str = "4"
    memory: str = "16Gi"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[str, ...] = ()
    extra_resources: Mapping[str, str] = field(default_factory=dict)
    at_first: int = 0
    most: int = 0
    # Images that those there from the beginning hold, and how many of them do; None: all.
    holds: tuple[str, ...] = ()
    holders: int | None = None
    # Where its nodes are, in turn.
    zones: tuple[str, ...] = ("a",)
    # Devices of DRA under the name of an extended resource: the scheduler finds them, `allocatable`
    # doesn't list them.
    devices: Mapping[str, int] = field(default_factory=dict)

    def holds_at(self, index: int) -> tuple[str, ...]:
        """The images of the first, second, ... of those there from the beginning."""
        return self.holds if self.holders is None or index < self.holders else ()

    def zone_at(self, index: int) -> str:
        """Where the first, second, ... of its nodes is."""
        return self.zones[index % len(self.zones)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a user chooses, in KubeSpawner's terms."""

    name: str
    image: str = BASE
    cpu: float = 1.0
    memory_gib: int = 1
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, str], ...] = ()
    extra_resource_limits: Mapping[str, str] = field(default_factory=dict)
    priority_class: str = ""
    # "DoNotSchedule" or "ScheduleAnyway": spread over the zones.
    spread: str = ""
    # Whether its kubelet asks the registry although the node holds the image, and with which
    # secret; "": none.
    pulls_always: bool = False
    pull_secret: str = ""
    # Whether the hub's values name it; else its users bring the image, as BinderHub's do.
    is_listed: bool = True
    # As JSON, its users' pod, which says all the above but priority and spread; "": it is made of
    # that.
    pod: str = ""
    # Where the hub makes its users' pods.
    namespace: str = NAMESPACE
    namespace_labels: Mapping[str, str] = field(default_factory=dict)

    def override(self) -> JSONObject:
        """The profile's `kubespawner_override`."""
        found: JSONObject = {
            "image": self.image,
            "cpu_guarantee": self.cpu,
            "mem_guarantee": f"{self.memory_gib}G",
        }
        if self.node_selector:
            found["node_selector"] = dict(self.node_selector)
        if self.tolerations:
            found["tolerations"] = [dict(toleration) for toleration in self.tolerations]
        if self.extra_resource_limits:
            found["extra_resource_limits"] = dict(self.extra_resource_limits)
        return found


class Hub(NamedTuple):
    """What a hub's values say, and the nodes that they are written for. more: of its case."""

    pools: Sequence[Pool]
    profiles: Sequence[Profile]
    more: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    at_seconds: float
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A pod of another team."""

    name: str
    # Pods of one kind are as good as each other.
    kind: str
    cpu: float = 1.0
    priority_class: str = ""
    grace_seconds: int = 0
    # None: it has been there, on `node`, from the beginning.
    at_seconds: float | None = None
    node: str = ""


class TroubleKind(StrEnum):
    """What happens, and what the trouble's `target` is."""

    # A node, the target, is cordoned on both sides.
    CORDON = "cordon"
    # The wall clock of Roost's controllers jumps by so many seconds.
    CLOCK = "clock"
    # Roost's scheduler dies, and reads of Leases are refused with this status.
    SCHEDULER_DIES_UNSEEN = "scheduler-dies-unseen"
    # Roost is upgraded. Its new scheduler can't start, the old one goes on. No target.
    UPGRADE = "upgrade"


class Trouble(NamedTuple):
    """Something that happens on both sides, or to Roost alone."""

    at_seconds: float
    what: TroubleKind
    target: str = ""


class Outage(NamedTuple):
    """A registry fails for a while, wherever it is asked."""

    at_seconds: float
    seconds: float
    # "": all images.
    image: str = ""
    # "": whoever asks. Else only those who ask with this pull secret.
    secret: str = ""


class Reclaim(NamedTuple):
    """A cloud takes a node back, with all that runs there; its users start their servers again."""

    at_seconds: float
    node: str
    # How long before the node is cordoned, and tainted with this key; "": cordoned alone.
    notice_seconds: float = 0.0
    taint: str = ""


class Foreseen(NamedTuple):
    """People for whom Roost keeps room: as many come, fewer, or more."""

    # Who are booked for the first arrival's moment, and who came then on each of 14 earlier days.
    booked: int = 0
    learned: int = 0
    # The set's number in the values.
    replicas: int = 0
    # Whether people may book by ConfigMaps, too.
    by_config_maps: bool = False

    def values(self, placeholder: JSONObject) -> JSONObject:
        """What the operator's values say of it. placeholder: what one requests."""
        learn = {"min": 0, "max": 200, "timeZone": "UTC"}
        entry = {
            "name": "default",
            "replicas": self.replicas,
            "learn": learn if self.learned else None,
            "resources": {"requests": placeholder},
        }
        booked = [booking(self.booked)] if self.booked else []
        events = {"enabled": True, "maxPeople": 500, "maxPlaceholders": 1000, "booked": booked}
        has_events = self.booked > 0 or self.by_config_maps
        return {"placeholders": [entry], **({"events": events} if has_events else {})}


class Writing(NamedTuple):
    """What somebody writes into a namespace's ConfigMap of bookings; "": it is deleted."""

    at_seconds: float
    namespace: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One cluster, its autoscaler and a time of arrivals."""

    name: str
    pools: tuple[Pool, ...]
    # The first is the hub's default.
    profiles: tuple[Profile, ...]
    arrivals: tuple[Arrival, ...]
    pull_seconds: float = 6.0
    boot_seconds: float = 4.0
    karpenter: bool = False
    # False where pulls take longer than anybody wants to wait here: then it's nodes that count.
    follows_starts: bool = True
    fault: Fault = Fault.NONE
    fault_at_seconds: float = 0.0
    # A second replica of the controllers, as by default.
    has_standby: bool = False
    # zero-to-jupyterhub's placeholders, which an import takes over.
    user_placeholders: int = 0
    # Whether the hub had zero-to-jupyterhub's, which an import replaces.
    has_user_scheduler: bool = True
    # Whether Roost's values are what an import makes of the hub's; else its defaults.
    is_imported: bool = False
    # The text of a real hub's values, in place of those made from the profiles; "": none.
    hub: str = ""
    # Values of Roost's, as JSON, laid over all others: what an operator may want, too.
    odd: str = ""
    # Whether other hubs share its nodes, as the defaults' `sharedPools`.
    is_shared: bool = False
    # When builds come.
    builds: tuple[float, ...] = ()
    others: tuple[Other, ...] = ()
    # PriorityClasses: name, value, and whether their preemptionPolicy is Never.
    priorities: tuple[tuple[str, int, bool], ...] = ()
    quotas: tuple[JSONObject, ...] = ()
    limit_ranges: tuple[JSONObject, ...] = ()
    # Image and node; "": on all nodes.
    failing_pulls: frozenset[tuple[str, str]] = frozenset()
    # Image, node and seconds of pulls that take long there, or for ever, and raise no error.
    slow_pulls: frozenset[tuple[str, str, float]] = frozenset()
    outages: tuple[Outage, ...] = ()
    # Zone of a pod's volume, by the pod's key; and the keys of those whose volume is bound with
    # them.
    volumes: tuple[tuple[str, str], ...] = ()
    unbound_volumes: frozenset[str] = frozenset()
    troubles: tuple[Trouble, ...] = ()
    reclaims: tuple[Reclaim, ...] = ()
    # None: the values keep their own placeholders.
    foreseen: Foreseen | None = None
    # The same of a second release, whose hub's users are those of the namespace BESIDE; None: there
    # is none.
    beside: Foreseen | None = None
    # In the order of time; where `foreseen` says that people may.
    writings: tuple[Writing, ...] = ()
    # For how long it is played in the model after the last arrival.
    plays_seconds: float = 80.0

    @property
    def images(self) -> frozenset[str]:
        """Images that have to be pulled; all others are everywhere."""
        return frozenset(profile.image for profile in self.profiles)

    def pull_fails(self, node: str, image: str) -> bool:
        """Whether no pull of the image succeeds on the node."""
        return not self.failing_pulls.isdisjoint({(image, node), (image, "")})

    def is_out(self, image: str, secret: str, now: float) -> bool:
        """Whether a registry refuses the image now to who asks with this secret."""
        return any(
            outage.at_seconds <= now < outage.at_seconds + outage.seconds
            and outage.image in ("", image)
            and outage.secret in ("", secret)
            for outage in self.outages
        )

    def pull_takes(self, node: str, image: str) -> float:
        """Seconds of a pull that doesn't fail."""
        slow = (
            seconds for at_image, at, seconds in self.slow_pulls if (at_image, at) == (image, node)
        )
        return max(slow, default=self.pull_seconds)

    @property
    def serves_many(self) -> bool:
        """Whether one release serves hubs of several namespaces, by the label of these."""
        return any(SERVED.items() <= profile.namespace_labels.items() for profile in self.profiles)

    def many_values(self) -> JSONObject:
        """What the operator of such a release adds to its values."""
        served = {"match": {"namespaceSelector": {"matchLabels": SERVED}}}
        return {"podClasses": {"user": served, BUILD: served}}

    def profile(self, name: str) -> Profile:
        return next(one for one in self.profiles if one.name == name)

    def hub_values(self) -> JSONObject:
        """The values file that such a hub has under zero-to-jupyterhub."""
        first = self.profiles[0]
        name, _, tag = first.image.rpartition(":")
        memory = {"guarantee": f"{first.memory_gib}G"}
        singleuser: JSONObject = {
            "image": {"name": name, "tag": tag},
            "cpu": {"guarantee": first.cpu},
            "memory": memory,
        }
        listed = [profile for profile in self.profiles if profile.is_listed]
        if len(listed) > 1:
            singleuser["profileList"] = [
                {"display_name": one.name, "kubespawner_override": one.override()} for one in listed
            ]
        scheduling = {
            "userPlaceholder": {
                "enabled": self.user_placeholders > 0,
                "replicas": self.user_placeholders,
            },
            "userScheduler": {"enabled": self.has_user_scheduler},
        }
        return {"singleuser": singleuser, "scheduling": scheduling}

    def default_values(self) -> JSONObject:
        """Roost's values with nothing set but the hub's images, which no default can know."""
        singleuser = self.hub_values()["singleuser"]
        shared = (
            {"sharedPools": {"namespaceSelector": {"matchLabels": SHARED}}}
            if self.is_shared
            else {}
        )
        return {
            "singleuser": {
                key: singleuser[key] for key in ("image", "profileList") if key in singleuser
            },
            **shared,
        }


def user_pod(name: str, profile: Profile) -> JSONObject:
    """The pod that KubeSpawner makes, with its home on the node: there is no storage here."""
    body: JSONObject = json.loads(_POD)
    body["metadata"]["name"] = f"jupyter-{name}"
    body["metadata"]["labels"]["hub.jupyter.org/username"] = name
    spec = body["spec"]
    spec["volumes"] = [{"name": "home", "emptyDir": {}}]
    spec["terminationGracePeriodSeconds"] = 0
    if profile.pod:
        own = json.loads(profile.pod)
        body["metadata"]["labels"] |= {
            key: str(value) for key, value in own["metadata"]["labels"].items()
        }
        spec |= own["spec"]
    else:
        (container,) = spec["containers"]
        container["image"] = profile.image
        requests: JSONObject = {"cpu": profile.cpu, "memory": profile.memory_gib * 1024**3}
        limits = dict(profile.extra_resource_limits)
        container["resources"] = {"requests": {**requests, **limits}, "limits": limits}
        spec["nodeSelector"] = dict(profile.node_selector)
        spec["tolerations"] = [
            *spec["tolerations"],
            *(dict(toleration) for toleration in profile.tolerations),
        ]
    for container in spec["containers"]:
        container["imagePullPolicy"] = "Always" if profile.pulls_always else "IfNotPresent"
    if profile.pull_secret:
        spec["imagePullSecrets"] = [{"name": profile.pull_secret}]
    if profile.priority_class:
        spec["priorityClassName"] = profile.priority_class
    if profile.spread:
        selector = {"matchLabels": {"component": "singleuser-server"}}
        constraint = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": profile.spread,
            "labelSelector": selector,
        }
        spec["topologySpreadConstraints"] = [constraint]
    return body


def build_pod(name: str) -> JSONObject:
    """The pod of a build, as BinderHub makes it: without requests."""
    labels, annotations = (
        {"component": "binderhub-build"},
        {"binder-repo": f"https://example.org/{name}"},
    )
    container = {"name": "builder", "image": "quay.io/jupyterhub/repo2docker:2026"}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec}


def other_pod(other: Other) -> JSONObject:
    """The pod of another team."""
    container = {
        "name": "main",
        "image": "busybox:1",
        "resources": {"requests": {"cpu": str(other.cpu)}},
    }
    spec: JSONObject = {
        "containers": [container],
        "terminationGracePeriodSeconds": other.grace_seconds,
    }
    if other.priority_class:
        spec["priorityClassName"] = other.priority_class
    return {
        "metadata": {"name": other.name, "labels": {"team": other.kind.strip().replace(" ", "-")}},
        "spec": spec,
    }


def burst(profile: str, count: int, *, at: float = 0.0, during: float = 2.0) -> tuple[Arrival, ...]:
    """So many users, evenly over a time."""
    return tuple(
        Arrival(at_seconds=at + during * index / count, profile=profile) for index in range(count)
    )


# Written down: each failed under Roost 0.1.0.

GPU_CASE = Case(
    name="gpu",
    # The puller tolerates the users' taints, and not the GPU's; the recipe has no node selector.
    pools=(
        Pool(name="cpu", at_first=2, holds=(BASE,)),
        Pool(name="gpu", at_first=1, taints=(GPU_TAINT,), extra_resources={GPU: "2"}, most=2),
    ),
    profiles=(
        Profile(name="plain"),
        Profile(name="gpu", extra_resource_limits={GPU: "1"}, tolerations=(TOLERATES_GPU,)),
    ),
    # The third finds both GPUs taken: it is the autoscaler's to see.
    arrivals=(*burst("plain", 2), *burst("gpu", 3, at=1.0)),
    pull_seconds=2.0,
)
LARGE_CASE = Case(
    name="60-gi",
    pools=(
        Pool(name="small", at_first=2, holds=(BASE,)),
        Pool(name="large", cpu="16", memory="128Gi", most=2),
    ),
    profiles=(Profile(name="plain"), Profile(name="large", memory_gib=60)),
    arrivals=(*burst("plain", 2), *burst("large", 2, at=1.0)),
    pull_seconds=2.0,
)
LECTURE_CASE = Case(
    name="lecture",
    # Of four CPU Karpenter leaves 3.9: three users a machine.
    pools=(Pool(name="users", labels=PURPOSE, at_first=1, most=12, holds=(BASE,)),),
    profiles=(Profile(name="plain"),),
    arrivals=burst("plain", 20, during=6.0),
    pull_seconds=8.0,
    karpenter=True,
)


# A pull that takes longer than the case; meanwhile a group's only node is one that pulls, and its
# template a copy.
_SLOW = (
    Pool(name="old", labels=PURPOSE, at_first=1, most=1, holds=(BASE,)),
    Pool(name="new", labels=PURPOSE, at_first=1, most=6),
)
SLOW_PULL_CASE = Case(
    name="slow-pull",
    pools=_SLOW,
    profiles=(Profile(name="plain"),),
    arrivals=burst("plain", 12),
    pull_seconds=90.0,
    follows_starts=False,
)
# Growth begins when all replicas are gone: nobody says anything of the new nodes.
KILLED_CASE = Case(
    name="controllers-killed",
    pools=(Pool(name="users", labels=PURPOSE, at_first=1, most=4, holds=(BASE,)),),
    profiles=(Profile(name="plain"),),
    arrivals=(*burst("plain", 2), *burst("plain", 5, at=3.0)),
    pull_seconds=3.0,
    fault=Fault.KILLED,
    fault_at_seconds=2.0,
)
# The leader hangs, and a node stays as it said last: pulling. The other replica takes over.
HUNG_CASE = Case(
    name="controllers-hung",
    pools=_SLOW,
    profiles=(Profile(name="plain"),),
    arrivals=burst("plain", 7, at=2.0),
    pull_seconds=90.0,
    follows_starts=False,
    fault=Fault.HUNG,
    fault_at_seconds=1.0,
    has_standby=True,
)


# PriorityClasses of a cluster: name, value, and whether their preemptionPolicy is Never.
PRIORITIES = (("premium", 1000, False), ("spare", -3, False))
# Classes whose pods can't take the room of Roost's own: an exception of promise 8. So in cases with
# these there are no placeholders, and nodes have a little more room than users need, as real ones
# do.
UNLIKE_PLACEHOLDERS = (("polite", 500, True), ("batch", -100, False))
# So many hubs' values are rendered; all else is of a seed of its own.
HUBS = 12


def draw(seed: int, hub: Hub | None = None, *, is_odd: bool = False) -> Case:
    """A case by chance. hub: a real one. is_odd: under values that aren't the defaults, nor an
    import's.
    """
    pools, profiles, more = hub or _hub(Random(f"hub {seed % HUBS}"))
    chance = Random(seed)
    if hub is not None:
        # Its first users are those of its default profile.
        profiles = [profiles[0], *chance.sample(profiles[1:], min(3, len(profiles) - 1))]
    # One node holds the image, others pull it for long, and there are no more: where the gate has
    # most to answer for.
    is_tight = chance.random() < 0.4
    grows = not is_tight and chance.random() < 0.6
    profiles, outages = _registries(Random(f"registries {seed}"), profiles)
    zones = chance.choice([("a",), ("a", "b")])
    has_placeholders = not more["is_imported"] or more["user_placeholders"] > 0
    # A real hub's placeholders are its own, and without controllers nobody follows quotas. Where
    # there are none, others may rank below them.
    is_plain = hub is None and not is_odd and has_placeholders
    priorities = (
        (*PRIORITIES, *(() if has_placeholders else UNLIKE_PLACEHOLDERS))
        if chance.random() < 0.6
        else ()
    )
    classes = [name for name, _, _ in priorities]
    sizes: JSONObject = {
        "zones": zones,
        "grows": grows,
        "is_tight": is_tight,
        "is_exact": "batch" not in classes,
    }
    pools = [_size(chance, pool, is_first=pool is pools[0], **sizes) for pool in pools]
    profiles = [_vary(chance, profile, classes) for profile in profiles]
    if hub is None and not is_odd:
        profiles = _in_hubs(Random(f"hubs {seed}"), profiles)
    arrivals = _arrivals(chance, [one.name for one in profiles])
    pull_seconds = 90.0 if is_tight else chance.choice([1.0, 6.0, 12.0, 90.0])
    nodes = [f"{pool.name}-{index}" for pool in pools for index in range(pool.at_first)]
    troubles = _troubles(chance, nodes)
    to_notice = (TroubleKind.SCHEDULER_DIES_UNSEEN, TroubleKind.UPGRADE)
    if any(trouble.what in to_notice for trouble in troubles):
        # Some come when Roost must have noticed.
        arrivals = (*arrivals, *burst(profiles[0].name, 3, at=45.0))
    of = {one.name: one.namespace for one in profiles}
    reclaims = _reclaims(Random(f"reclaims {seed}"), nodes)
    volumes, unbound = _volumes(
        chance, [f"{of[a.profile]}/jupyter-{a.profile}-{i}" for i, a in enumerate(arrivals)], zones
    )
    namespace = profiles[0].namespace
    foreseen = _foreseen(Random(f"foreseen {seed}"), arrivals) if is_plain else None
    writings = _writings(Random(f"writings {seed}"), profiles, arrivals) if is_plain else ()
    if writings:
        foreseen = (foreseen or Foreseen())._replace(by_config_maps=True)
    return Case(
        name=f"drawn-{seed}",
        pools=tuple(pools),
        profiles=tuple(profiles),
        arrivals=arrivals,
        pull_seconds=pull_seconds,
        boot_seconds=chance.choice([4.0, 8.0]),
        follows_starts=pull_seconds < 60.0,
        fault=Fault.KILLED if chance.random() < 0.2 else Fault.NONE,
        fault_at_seconds=chance.uniform(0.0, 4.0),
        has_standby=True,
        priorities=(*priorities, *([("hub-priority", 10, False)] if hub else [])),
        others=(*_residents(chance, pools[0], classes), *_team(chance, classes)),
        failing_pulls=_failing(chance, profiles, nodes),
        troubles=troubles,
        volumes=volumes,
        unbound_volumes=unbound,
        builds=tuple(
            chance.uniform(0.0, 10.0)
            for _ in range(chance.randint(1, 4) if chance.random() < 0.3 else 0)
        ),
        quotas=(
            *_quotas(chance, namespace),
            *(
                _own_quotas(Random(f"quota {seed}"), profiles, arrivals, reclaims)
                if is_plain
                else ()
            ),
        ),
        limit_ranges=_limit_ranges(chance, namespace),
        slow_pulls=_slow(chance, profiles, nodes),
        outages=outages,
        reclaims=reclaims,
        odd=json.dumps(_odd(Random(f"odd {seed}"))) if is_odd else "",
        foreseen=foreseen,
        writings=writings,
        **more,
    )


def draw_two(seed: int) -> Case:
    """A case by chance of two hubs on the same nodes, each with a release: half of the profiles'
    twins are the second one's, and its placeholders and people are drawn apart.
    """
    case = draw(seed)
    chance = Random(f"beside {seed}")
    # Both have placeholders.
    unlike = {name: "" for name, _, _ in UNLIKE_PLACEHOLDERS}
    first = tuple(
        replace(
            profile,
            namespace=NAMESPACE,
            namespace_labels={},
            priority_class=unlike.get(profile.priority_class, profile.priority_class),
        )
        for profile in case.profiles
        if profile.namespace == case.profiles[0].namespace
    )
    twins = tuple(
        replace(one, name=f"{one.name}-{BESIDE}", namespace=BESIDE)
        for one in first
        if one is first[0] or chance.random() < 0.5
    )
    of_first = [
        arrival for arrival in case.arrivals if arrival.profile in {one.name for one in first}
    ]
    of_twins = _arrivals(chance, [twin.name for twin in twins])
    foreseen = _foreseen(chance, of_first)
    return replace(
        case,
        name=f"two-{seed}",
        profiles=(*first, *twins),
        arrivals=tuple(sorted((*of_first, *of_twins), key=lambda one: one.at_seconds)),
        foreseen=foreseen,
        beside=_foreseen(chance, of_twins) or Foreseen(replicas=chance.choice([0, 3, 12])),
        priorities=tuple(priority for priority in case.priorities if priority[0] not in unlike),
        others=tuple(
            replace(other, priority_class=unlike.get(other.priority_class, other.priority_class))
            for other in case.others
        ),
        # What strikes one release is drawn for one.
        fault=Fault.NONE,
        troubles=tuple(trouble for trouble in case.troubles if trouble.what is TroubleKind.CORDON),
        writings=(),
        quotas=(),
        limit_ranges=(),
        volumes=(),
        unbound_volumes=frozenset(),
    )


def _odd(chance: Random) -> JSONObject:
    """Values that are valid, each of a key that placement hangs on; null deletes."""
    user: JSONObject = {"preferredNodeTerms": []} if chance.random() < 0.2 else {}
    build: JSONObject = {}
    found: JSONObject = {
        "imageGate": {
            "mode": chance.choice(["requireLabel", "requireLabel", "prefer", "off"]),
            "openAfterSeconds": chance.choice([1, 5, 10]),
        },
        "podClasses": {"user": user, BUILD: build},
    }
    if chance.random() < 0.6:
        spare, nodes = chance.choice([0, 2, "-25%", "50%"]), chance.choice([1, 3, 30])
        user["warm"] = chance.choice(
            [None, {"podsPerNode": chance.choice([0, 2]), "spare": spare, "nodes": nodes}]
        )
    if chance.random() < 0.6:
        user["join"] = chance.choice(
            [None, {"user": 1}, {BUILD: 100}, {"user": 100, "placeholder": 50}]
        )
    if chance.random() < 0.6:
        user["avoid"] = chance.choice([None, {"placeholder": 1}, {"placeholder": 100, BUILD: 100}])
    if chance.random() < 0.3:
        build |= {"home": None, "join": {BUILD: 100}, "avoid": None}
    if chance.random() < 0.3:
        build["resources"] = chance.choice([None, {"cpu": "2", "memory": "4Gi"}])
    if chance.random() < 0.7:
        names = ("pack", "imageFirst", "sticky", "spread")
        profiles = {
            name: {"strategy": chance.choice(names)} for name in ("user", BUILD, "placeholder")
        }
        found["scheduler"] = {"profiles": profiles}
    elif chance.random() < 0.4:
        found["scheduler"] = {"target": "none"}
    if chance.random() < 0.3:
        found["placeholderMover"] = {"evictionsPerMinute": chance.choice([0, 60])}
    if chance.random() < 0.15:
        found["prePuller"] = {"enabled": False}
    if chance.random() < 0.15:
        found["webhook"] = {"readNodes": False}
    if chance.random() < 0.1:
        found |= {
            "controllers": {"enabled": False},
            "webhook": {"certificates": {"mode": "certManager"}},
        }
    if chance.random() < 0.4:
        found["sharedPools"] = {"namespaceSelector": chance.choice([{}, {"matchLabels": SHARED}])}
    return found


def _hub(chance: Random) -> Hub:
    dedicated = chance.random() < 0.3
    taints = (DEDICATED_TAINT,) if dedicated else ()
    labels = PURPOSE if dedicated or chance.random() < 0.5 else {}
    pools = [Pool(name="users", labels=labels, taints=taints, holds=(BASE,))]
    profiles = [
        Profile(name="plain", cpu=chance.choice([0.5, 1.0, 1.5]), memory_gib=chance.randint(1, 3))
    ]
    if chance.random() < 0.5:
        is_dra = chance.random() < 0.4
        devices: JSONObject = {"devices": {GPU: 2}} if is_dra else {"extra_resources": {GPU: "2"}}
        pools.append(Pool(name="gpu", taints=(GPU_TAINT,), **devices))
        image = chance.choice([BASE, OTHER])
        profiles.append(
            Profile(
                name="gpu",
                image=image,
                extra_resource_limits={GPU: "1"},
                tolerations=(TOLERATES_GPU,),
            )
        )
    if chance.random() < 0.5:
        large = {"size": "large"}
        selected = chance.random() < 0.5
        pools.append(Pool(name="large", cpu="16", memory="128Gi", labels={**labels, **large}))
        profiles.append(
            Profile(
                name="large",
                memory_gib=chance.choice([30, 60]),
                node_selector=large if selected else {},
            )
        )
    if chance.random() < 0.4:
        # An image that no node holds yet.
        profiles.append(Profile(name="other", image=OTHER, cpu=0.5))
    if chance.random() < 0.4:
        profiles.append(
            Profile(name="binder", image="quay.io/binder/repository:1", cpu=0.5, is_listed=False)
        )
    more = {
        "is_shared": chance.random() < 0.4,
        "is_imported": chance.random() < 0.6,
        "user_placeholders": chance.choice([0, 0, 3]),
        "has_user_scheduler": chance.random() < 0.7,
    }
    return Hub(pools, profiles, more)


def _size(
    chance: Random,
    pool: Pool,
    *,
    zones: tuple[str, ...],
    is_first: bool,
    grows: bool,
    is_tight: bool,
    is_exact: bool,
) -> Pool:
    at_first = chance.randint(2 if is_tight else 1, 3) if is_first else chance.randint(0, 1)
    more = {"users": 7, "gpu": 2}.get(pool.name, 3) if grows else 0
    cpu = chance.choice([4.0, 8.0]) if pool.name == "users" else float(pool.cpu)
    holders = 1 if is_tight else chance.randint(0, at_first) if chance.random() < 0.6 else at_first
    return replace(
        pool,
        at_first=at_first,
        most=at_first + more,
        cpu=str(cpu if is_exact else cpu + 0.1),
        memory=pool.memory if is_exact else pool.memory.replace("Gi", ".1Gi"),
        holders=holders,
        zones=zones,
    )


def _vary(chance: Random, profile: Profile, classes: Sequence[str]) -> Profile:
    name = chance.choice(["", "", *(pod_class for pod_class in classes if pod_class != "batch")])
    name = name or profile.priority_class
    return replace(
        profile,
        priority_class=name,
        spread=chance.choice(["", "", "", "DoNotSchedule", "ScheduleAnyway"]),
    )


def _registries(
    chance: Random, profiles: Sequence[Profile]
) -> tuple[list[Profile], tuple[Outage, ...]]:
    """Who asks a registry how, and when it fails: mostly never."""
    if chance.random() > 0.3:
        return [*profiles], ()
    varied = [
        replace(
            profile,
            pulls_always=chance.random() < 0.3,
            pull_secret=chance.choice(["", "", "ours", "theirs"]),
        )
        for profile in profiles
    ]
    outages = [
        Outage(
            at_seconds=chance.uniform(-5.0, 10.0),
            seconds=chance.choice([5.0, 60.0, 240.0]),
            image=chance.choice(["", chance.choice(varied).image]),
            secret=chance.choice(["", "", chance.choice(varied).pull_secret]),
        )
        for _ in range(chance.randint(0, 2))
    ]
    return varied, tuple(outages)


def _in_hubs(chance: Random, profiles: Sequence[Profile]) -> list[Profile]:
    """Mostly one hub's; else each profile is one of two or three hubs that a release serves."""
    if chance.random() > 0.3:
        return [*profiles]
    hubs = chance.choice([(NAMESPACE, OTHER_HUBS[0]), OTHER_HUBS, (NAMESPACE, *OTHER_HUBS)])
    found = []
    for hub in hubs:
        # The first hub has the default profile, others some, and names of their own.
        kept = [profile for profile in profiles[1:] if chance.random() < 0.6]
        kept = [profiles[0], *kept] if hub == hubs[0] or not kept else kept
        found += [
            replace(
                profile,
                name=profile.name if hub == hubs[0] else f"{profile.name}-{hub}",
                namespace=hub,
                namespace_labels=SERVED,
            )
            for profile in kept
        ]
    return found


def _reclaims(chance: Random, nodes: Sequence[str]) -> tuple[Reclaim, ...]:
    """Spot nodes that are taken back: mostly none."""
    if chance.random() > 0.25 or not nodes:
        return ()
    return tuple(
        Reclaim(
            at_seconds=chance.uniform(0.0, 60.0),
            node=node,
            notice_seconds=chance.choice([0.0, 15.0, 30.0]),
            taint=chance.choice(["", "aws-node-termination-handler/spot-itn"]),
        )
        for node in chance.sample([*nodes], chance.randint(1, min(2, len(nodes))))
    )


def _arrivals(chance: Random, names: Sequence[str]) -> tuple[Arrival, ...]:
    arrivals: list[Arrival] = []
    at = 0.0
    for _ in range(chance.randint(1, 2)):
        during = chance.uniform(0.5, 3.0)
        for _ in range(chance.randint(2, 8)):
            # The default profile half of the time.
            name = names[0] if chance.random() < 0.5 else chance.choice(names)
            arrivals.append(Arrival(at_seconds=at + chance.uniform(0.0, during), profile=name))
        at += during + chance.uniform(2.0, 12.0)
    return tuple(sorted(arrivals, key=lambda arrival: arrival.at_seconds))


def _residents(chance: Random, pool: Pool, classes: Sequence[str]) -> list[Other]:
    """Other teams' pods, which are on users' nodes from the beginning."""
    found: list[Other] = []
    for index in range(pool.at_first):
        left = float(pool.cpu) - 0.5
        while left >= 1.0 and chance.random() < 0.5:
            cpu = chance.choice([one for one in (1.0, 2.0, 3.0) if one <= left])
            left -= cpu
            name = chance.choice(["", *classes])
            found.append(
                Other(
                    name=f"resident-{len(found)}",
                    kind=f"resident {name}",
                    cpu=cpu,
                    priority_class=name,
                    grace_seconds=chance.choice([0, 5, 60]),
                    node=f"{pool.name}-{index}",
                )
            )
    return found


def _team(chance: Random, classes: Sequence[str]) -> list[Other]:
    """Other teams' pods, which come meanwhile."""
    count = chance.randint(1, 3) if chance.random() < 0.3 else 0
    name = chance.choice(["", *classes])
    return [
        Other(
            name=f"job-{index}",
            kind=f"job {name}",
            priority_class=name,
            at_seconds=chance.uniform(0.0, 8.0),
        )
        for index in range(count)
    ]


def _failing(
    chance: Random, profiles: Sequence[Profile], nodes: Sequence[str]
) -> frozenset[tuple[str, str]]:
    """Pulls that never succeed: on a node, or everywhere."""
    if chance.random() > 0.3 or not nodes:
        return frozenset()
    image = chance.choice(profiles).image
    return frozenset({(image, node) for node in nodes if chance.random() < 0.4})


def _slow(
    chance: Random, profiles: Sequence[Profile], nodes: Sequence[str]
) -> frozenset[tuple[str, str, float]]:
    """Pulls that take longer on a node than on others, or never end there."""
    if chance.random() > 0.3:
        return frozenset()
    image = chance.choice(profiles).image
    return frozenset(
        (image, node, chance.choice([60.0, 130.0, inf])) for node in nodes if chance.random() < 0.4
    )


def _troubles(chance: Random, nodes: Sequence[str]) -> tuple[Trouble, ...]:
    found: list[Trouble] = []
    if nodes and chance.random() < 0.1:
        at = chance.uniform(0.0, 6.0)
        found.append(Trouble(at, TroubleKind.CORDON, chance.choice(nodes)))
    if chance.random() < 0.15:
        at = chance.uniform(0.0, 6.0)
        found.append(Trouble(at, TroubleKind.CLOCK, chance.choice(["-60", "-3600", "60"])))
    if chance.random() < 0.08:
        at = chance.uniform(0.0, 6.0)
        status = chance.choice(["401", "403"])
        found.append(Trouble(at, TroubleKind.SCHEDULER_DIES_UNSEEN, status))
    elif chance.random() < 0.08:
        found.append(Trouble(chance.uniform(0.0, 6.0), TroubleKind.UPGRADE))
    return tuple(found)


def _volumes(
    chance: Random, names: Sequence[str], zones: Sequence[str]
) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
    """Homes on volumes: the zones of those that are bound, and those that will be."""
    if chance.random() > 0.25:
        return (), frozenset()
    bound = [name for name in names if chance.random() < 0.5]
    return tuple((name, chance.choice(zones)) for name in bound), frozenset(names) - frozenset(
        bound
    )


def _quotas(chance: Random, namespace: str) -> tuple[JSONObject, ...]:
    """The hub's, with room enough: what they refuse is what a pod says."""
    spec = chance.choice(
        [
            {"hard": {"pods": "200", "requests.memory": "4Ti"}},
            {"scopes": ["NotBestEffort"], "hard": {"pods": "200", "requests.cpu": "800"}},
            {"scopes": ["NotBestEffort"], "hard": {"limits.memory": "4Ti"}},
            {"scopes": ["CrossNamespacePodAffinity"], "hard": {"pods": "0"}},
        ]
    )
    return (
        ({"metadata": {"name": "quota", "namespace": namespace}, "spec": spec},)
        if chance.random() < 0.2
        else ()
    )


def _own_quotas(
    chance: Random,
    profiles: Sequence[Profile],
    arrivals: Sequence[Arrival],
    reclaims: Sequence[Reclaim],
) -> tuple[JSONObject, ...]:
    """Quotas of hubs' namespaces in which all users find room, and not many pods more."""
    found = []
    for namespace in dict.fromkeys(profile.namespace for profile in profiles):
        if chance.random() > 0.6:
            continue
        of_hub = {profile.name: profile for profile in profiles if profile.namespace == namespace}
        users = [of_hub[arrival.profile] for arrival in arrivals if arrival.profile in of_hub]
        # Pullers' pods and builds are there, too; those of nodes that replace others' besides.
        beside = 16 + 4 * len(reclaims)
        pods = len(users) + beside + chance.choice([0, 0, 5, 20, 40])
        # As many more of requests, each as large as the largest user.
        cpu = max((user.cpu for user in users), default=1.0)
        hard: JSONObject = chance.choice(
            [{"pods": str(pods)}, {"count/pods": str(pods)}, {"requests.cpu": str(pods * cpu)}]
        )
        if any(user.pod for user in users):
            hard = {"pods": str(pods)}
        metadata = {"name": "people", "namespace": namespace}
        scopes = {"scopes": ["NotBestEffort"]} if "requests.cpu" in hard else {}
        found.append({"metadata": metadata, "spec": {"hard": hard, **scopes}})
    return tuple(found)


def _foreseen(chance: Random, arrivals: Sequence[Arrival]) -> Foreseen | None:
    if chance.random() > 0.5:
        return None
    people = chance.choice([5, 30, 60, max(1, len(arrivals))])
    return chance.choice(
        [
            Foreseen(booked=people),
            Foreseen(learned=people),
            Foreseen(replicas=people),
            Foreseen(booked=people, learned=12, replicas=3),
        ]
    )


def booking(people: int, name: str = "lecture", *, start: str = START, **more: str) -> JSONObject:
    """One of the events that a ConfigMap lists."""
    return {"name": name, "people": people, "start": start, "timeZone": "UTC", **more}


def _writings(
    chance: Random, profiles: Sequence[Profile], arrivals: Sequence[Arrival]
) -> tuple[Writing, ...]:
    """What the operator and the hubs' admins book by ConfigMaps, mostly nothing: rightly, too much,
    or in a way that nobody can read.
    """
    if chance.random() > 0.4:
        return ()
    found = []
    for namespace in dict.fromkeys([NAMESPACE, *(profile.namespace for profile in profiles)]):
        at = chance.uniform(-8.0, 3.0)
        # Some change their mind.
        for _ in range(chance.choice([0, 1, 1, 2])):
            people = chance.choice([1, 10, 30, 60, 600, max(1, len(arrivals))])
            start = chance.choice([START, START, "2027-01-15T08:05", "2027-01-15T07:50"])
            events = [booking(people, start=start)]
            if chance.random() < 0.3:
                events.append(booking(12, "seminar", image=chance.choice(profiles).image))
            text = json.dumps(events)
            found.append(Writing(at, namespace, chance.choice([text, text, text, "", text[:-9]])))
            at += chance.uniform(0.0, 20.0)
    return tuple(sorted(found))


def _limit_ranges(chance: Random, namespace: str) -> tuple[JSONObject, ...]:
    limit = chance.choice(
        [
            {"defaultRequest": {"cpu": "100m", "memory": "256Mi"}},
            {"default": {"memory": "64Gi"}},
            {"min": {"memory": "1Mi"}, "defaultRequest": {"memory": "1Mi"}},
        ]
    )
    spec = {"limits": [{"type": "Container", **limit}]}
    return (
        ({"metadata": {"name": "limits", "namespace": namespace}, "spec": spec},)
        if chance.random() < 0.15
        else ()
    )
