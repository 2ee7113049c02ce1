"""Read a hub's values as what can be played: its users' pods, as KubeSpawner makes them, and nodes
that take them.
"""

import json
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any, cast

from generator.importing.importer import import_layers
from generator.importing.profile_pools import UNKNOWN_IMAGE
from generator.importing.trial_pods import UserPod, user_pods
from roost_core.objects.fields import JSONObject
from roost_core.objects.quantities import parse_quantity
from tests.builders import NAMESPACE, RELEASE
from tests.judge.cases import DEDICATED_TAINT, Hub, Pool, Profile

BROUGHT = "quay.io/binder/repository:1"
_KEPT = ("cpu", "memory")


@cache
def imported(hub_values: str) -> str:
    """Roost's values for the hub, as JSON."""
    return json.dumps(import_layers([("hub.yaml", hub_values)], RELEASE).values)


@cache
def read_hub(text: str) -> Hub:
    """A profile for each kind of user, and a pool for all that may go to the same nodes."""
    chance = Random(text)
    found = import_layers([("hub.yaml", text)], RELEASE)
    profiles: list[Profile] = []
    groups: dict[str, list[UserPod]] = {}
    for index, user in enumerate(user_pods(found, NAMESPACE)):
        spec = user.pod["spec"]
        priority = spec.pop("priority", 0)
        if spec["schedulerName"] == f"{RELEASE}-user-scheduler":
            # As an import says, it is switched off.
            del spec["schedulerName"]
        (notebook, *_) = spec["containers"]
        if notebook["image"] in ("", UNKNOWN_IMAGE):
            notebook["image"] = BROUGHT
        name = "hub-priority" if priority else ""
        spec["nodeSelector"] = {key: value or "" for key, value in spec["nodeSelector"].items()}
        where = (spec["nodeSelector"], spec["tolerations"], _required(spec), sorted(_extra(spec)))
        pool = groups.setdefault(json.dumps(where), [])
        pool.append(user)
        profiles.append(
            Profile(
                name=f"kind-{index}",
                image=notebook["image"],
                pod=json.dumps(user.pod),
                namespace=user.pod["metadata"]["namespace"] or NAMESPACE,
                namespace_labels=dict(user.namespace_labels),
                priority_class=name,
            )
        )
    more = {
        "hub": text,
        "is_imported": True,
        "user_placeholders": sum(
            one["replicas"] for one in cast("Any", found.values.get("placeholders", ()))
        ),
    }
    pools = tuple(
        _pool(chance, f"pool-{index}", group) for index, group in enumerate(groups.values())
    )
    return Hub(pools, tuple(profiles), more)


def _pool(chance: Random, name: str, users: list[UserPod]) -> Pool:
    """Nodes for some of the largest of these users."""
    spec = users[0].pod["spec"]
    sizes = [user.pod["spec"]["containers"][0]["resources"]["requests"] for user in users]
    cpu, memory = (max(float(parse_quantity(size.get(key, 0))) for size in sizes) for key in _KEPT)
    slots = chance.choice([2, 3, 5])
    labels = dict(spec["nodeSelector"])
    for one in _required(spec)[:1]:
        labels |= {
            expression["key"]: (expression.get("values") or ["yes"])[0]
            for expression in one.get("matchExpressions", ())
        }
    tolerated = [
        toleration
        for toleration in spec["tolerations"]
        if toleration.get("key") and toleration.get("effect") != "PreferNoSchedule"
    ]
    usual = [
        one for one in tolerated if "dedicated" in one["key"] and "hub.jupyter.org" in one["key"]
    ]
    taints = [
        f"{one['key']}={one.get('value', '')}:NoSchedule" for one in tolerated if one not in usual
    ]
    taints += [DEDICATED_TAINT] * (bool(usual) and chance.random() < 0.5)
    return Pool(
        name=name,
        cpu=str(max(2.0, round(cpu * slots, 1))),
        memory=f"{max(4, round(memory * slots / 2**30))}Gi",
        labels=labels,
        taints=tuple(taints),
        extra_resources={
            key: str(int(parse_quantity(amount)) * 2) for key, amount in _extra(spec).items()
        },
        holds=(users[0].pod["spec"]["containers"][0]["image"],),
    )


def _required(spec: JSONObject) -> list[Any]:
    affinity = spec["affinity"]["nodeAffinity"].get(
        "requiredDuringSchedulingIgnoredDuringExecution", {}
    )
    return list(affinity.get("nodeSelectorTerms", ()))


def _extra(spec: JSONObject) -> Mapping[str, Any]:
    limits = spec["containers"][0]["resources"].get("requests", {})
    return {key: amount for key, amount in limits.items() if key not in _KEPT}
