"""What a pair plays: machines, profiles and arrivals, written down or drawn from a seed; and a user's pod and values.

Owns chance and shapes, no cluster. Pods are KubeSpawner's, values are zero-to-jupyterhub's.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
GPU_TAINT = f"{GPU}=present:NoSchedule"
TOLERATES_GPU = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
DEDICATED_TAINT = "hub.jupyter.org/dedicated=user:NoSchedule"
PURPOSE = {"hub.jupyter.org/node-purpose": "user"}
BASE = "quay.io/jupyter/scipy-notebook:2026-11-03"
OTHER = "quay.io/jupyter/pytorch-notebook:cuda12"
IMAGE_BYTES = 3_000_000_000
# A hub's own spawn as zero-to-jupyterhub 4.4 makes it.
_POD = json.loads((Path(__file__).parents[2] / "benchmarks" / "pods" / "user.json").read_text())


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
    # Images that those there from the beginning hold.
    holds: tuple[str, ...] = ()


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

    def override(self) -> Object:
        """The profile's `kubespawner_override`."""
        found: Object = {"image": self.image, "cpu_guarantee": self.cpu, "mem_guarantee": f"{self.memory_gib}G"}
        if self.node_selector:
            found["node_selector"] = dict(self.node_selector)
        if self.tolerations:
            found["tolerations"] = [dict(one) for one in self.tolerations]
        if self.extra_resource_limits:
            found["extra_resource_limits"] = dict(self.extra_resource_limits)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A user who comes."""

    at_seconds: float
    profile: str


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

    def profile(self, name: str) -> Profile:
        """The profile of that name."""
        return next(one for one in self.profiles if one.name == name)

    def hub_values(self) -> Object:
        """The values file that such a hub has under zero-to-jupyterhub."""
        first = self.profiles[0]
        name, _, tag = first.image.rpartition(":")
        singleuser: Object = {
            "image": {"name": name, "tag": tag},
            "cpu": {"guarantee": first.cpu},
            "memory": {"guarantee": f"{first.memory_gib}G"},
        }
        if len(self.profiles) > 1:
            singleuser["profileList"] = [
                {"display_name": one.name, "kubespawner_override": one.override()} for one in self.profiles
            ]
        scheduling = {
            "userPlaceholder": {"enabled": self.user_placeholders > 0, "replicas": self.user_placeholders},
            "userScheduler": {"enabled": self.has_user_scheduler},
        }
        return {"singleuser": singleuser, "scheduling": scheduling}

    def default_values(self) -> Object:
        """Roost's values with nothing set but the hub's images, which no default can know."""
        singleuser = self.hub_values()["singleuser"]
        return {"singleuser": {key: singleuser[key] for key in ("image", "profileList") if key in singleuser}}


def user_pod(name: str, profile: Profile) -> Object:
    """The pod that KubeSpawner makes, with its home on the node: there is no storage here."""
    body: Object = copy.deepcopy(_POD)
    body["metadata"]["name"] = f"jupyter-{name}"
    body["metadata"]["labels"]["hub.jupyter.org/username"] = name
    spec = body["spec"]
    spec["volumes"] = [{"name": "home", "emptyDir": {}}]
    spec["terminationGracePeriodSeconds"] = 0
    (container,) = spec["containers"]
    container["image"] = profile.image
    requests: Object = {"cpu": profile.cpu, "memory": profile.memory_gib * 1024**3}
    limits = dict(profile.extra_resource_limits)
    container["resources"] = {"requests": {**requests, **limits}, "limits": limits}
    if profile.node_selector:
        spec["nodeSelector"] = dict(profile.node_selector)
    spec["tolerations"] = [*spec["tolerations"], *(dict(one) for one in profile.tolerations)]
    return body


def burst(profile: str, count: int, *, at: float = 0.0, during: float = 2.0) -> tuple[Arrival, ...]:
    """So many users, evenly over a time."""
    return tuple(Arrival(at_seconds=at + during * index / count, profile=profile) for index in range(count))


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
    pools=(Pool(name="small", at_first=2, holds=(BASE,)), Pool(name="large", cpu="16", memory="128Gi", most=2)),
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


# A pull that takes longer than the case; meanwhile a group's only node is one that pulls, and its template a copy.
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


def draw(seed: int) -> Case:
    """A case by chance."""
    chance = Random(seed)
    dedicated = chance.random() < 0.3
    taints = (DEDICATED_TAINT,) if dedicated else ()
    labels = PURPOSE if dedicated or chance.random() < 0.5 else {}
    pools = [
        Pool(
            name="users",
            cpu=chance.choice(["4", "8"]),
            labels=labels,
            taints=taints,
            at_first=chance.randint(1, 3),
            most=10,
            holds=(BASE,) if chance.random() < 0.85 else (),
        )
    ]
    profiles = [Profile(name="plain", cpu=chance.choice([0.5, 1.0, 1.5]), memory_gib=chance.randint(1, 3))]
    if chance.random() < 0.5:
        at_first = chance.randint(0, 1)
        pools.append(
            Pool(name="gpu", taints=(GPU_TAINT,), extra_resources={GPU: "2"}, at_first=at_first, most=at_first + 2)
        )
        image = chance.choice([BASE, OTHER])
        profiles.append(
            Profile(name="gpu", image=image, extra_resource_limits={GPU: "1"}, tolerations=(TOLERATES_GPU,))
        )
    if chance.random() < 0.5:
        at_first = chance.randint(0, 1)
        selected = chance.random() < 0.5
        large = {"size": "large"}
        pools.append(
            Pool(name="large", cpu="16", memory="128Gi", labels={**labels, **large}, at_first=at_first, most=4)
        )
        profiles.append(
            Profile(name="large", memory_gib=chance.choice([30, 60]), node_selector=large if selected else {})
        )
    if chance.random() < 0.4:
        # An image that no node holds yet.
        profiles.append(Profile(name="other", image=OTHER, cpu=0.5))
    names = [one.name for one in profiles]
    arrivals: list[Arrival] = []
    at = 0.0
    for _ in range(chance.randint(1, 2)):
        during = chance.uniform(0.5, 3.0)
        for _ in range(chance.randint(3, 12)):
            # The default profile half of the time.
            name = names[0] if chance.random() < 0.5 else chance.choice(names)
            arrivals.append(Arrival(at_seconds=at + chance.uniform(0.0, during), profile=name))
        at += during + chance.uniform(2.0, 6.0)
    pull_seconds = chance.choice([1.0, 6.0, 12.0, 90.0])
    return Case(
        name=f"drawn-{seed}",
        pools=tuple(pools),
        profiles=tuple(profiles),
        arrivals=tuple(sorted(arrivals, key=lambda one: one.at_seconds)),
        pull_seconds=pull_seconds,
        boot_seconds=chance.choice([4.0, 8.0]),
        follows_starts=pull_seconds < 60.0,
        fault=Fault.KILLED if chance.random() < 0.2 else Fault.NONE,
        fault_at_seconds=chance.uniform(0.0, 4.0),
        has_standby=True,
        user_placeholders=chance.choice([0, 3]),
        has_user_scheduler=chance.random() < 0.7,
    )
