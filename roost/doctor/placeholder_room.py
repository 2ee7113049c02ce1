"""How many placeholders of a set there can be: by the namespace's quotas, its nodes, and what their
pools grow to.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from statistics import median_low
from typing import Any, Final, NamedTuple

from generator.values.release_name import Release
from roost.doctor.evidence import AUTOSCALER_STATUS, NODE_POOLS, show_amount, some
from roost.doctor.quotas import counting, counts_users, named
from roost_core.kube.client import Client
from roost_core.objects.fields import JSONObject
from roost_core.objects.foreign_yaml import ForeignTextError, load_foreign
from roost_core.objects.node import Node, node_admits
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.quotas import AT_ONCE, amount_in_words
from roost_core.objects.requests import PODS, read_requests, requested, round_up
from roost_core.objects.selectors import read_node_rules
from roost_core.placement.labels import POOL_LABELS

_NO_LIMIT: Final = 10**9


class _CountedKey(NamedTuple):
    """A key of a quota that counts placeholders. Amounts are in nodes' units of `resource`."""

    key: str
    resource: str
    per_placeholder: int
    most: int
    taken: int


class PlaceholderRoom:
    """Placeholders of one set, as release.json has it, on these nodes.

    Amounts are in nodes' units.
    """

    def __init__(self, entry: Mapping[str, Any], nodes: Sequence[Node]) -> None:
        self._name = entry["name"]
        self._nodes = nodes
        rules = read_node_rules(
            entry["nodeSelector"], entry["requiredNodeTerms"] or None, entry["tolerations"]
        )
        self._own = [node for node in nodes if node_admits(rules, node)]
        self._limits = _amounts(entry["resources"].get("limits") or {})
        requests = _amounts(requested(entry["resources"]))
        self._requests = requests | {PODS: 1}
        # How many most nodes hold, daemon pods aside, and how many if their kubelets took more
        # pods; 0: nobody knows.
        self.per_node = self._a_node(self._requests)
        self._roomy = self._a_node(requests or [PODS])

    def _a_node(self, names: Iterable[str]) -> int:
        fits = [
            min(node.allocatable.get(name, 0) // self._requests[name] for name in names)
            for node in self._own
        ]
        return median_low(fits) if fits else 0

    def misfits(
        self, client: Client, release: Release, people: int, booked: int | None = None
    ) -> Iterator[tuple[str, str]]:
        """Yield why so many more don't fit, and the fix of each. Raises ClusterError.

        booked: people for whom placeholders are kept, who need room in quotas, too; None: quotas
        are looked at for the placeholders alone.
        """
        for quota in counting(client, release):
            if booked is None:
                yield from self._refused(quota, people)
            else:
                yield from self._too_small(quota, people, booked)
        if not self.per_node:
            return
        nodes = ceil(people / self.per_node)
        fewer = ceil(people / self._roomy)
        if fewer < nodes:
            reason = (
                f"Nodes of set {self._name} have room for {self._roomy} placeholders, but their"
                " kubelets take "
            )
            reason += (
                f"{self.per_node} pods (maxPods): {people} need {nodes} nodes in place of {fewer}."
            )
            yield (
                reason,
                (
                    f"Set maxPods there to {self._roomy} beside daemons' pods, or choose smaller"
                    " nodes."
                ),
            )
        pools = self._pools(client)
        most = sum(pools.values())
        if pools and most < people:
            reason = (
                f"{some(sorted(pools))}: never room for more than {most} of {people} placeholders"
                " of set "
            )
            reason += f"{self._name}, by maxSize of cluster-autoscaler or spec.limits of Karpenter."
            yield reason, f"Set that for {nodes} nodes, beside those of others."

    def _too_small(self, quota: JSONObject, seats: int, booked: int) -> Iterator[tuple[str, str]]:
        """What a quota lacks for people who are booked and their placeholders: these give way."""
        for counted in self._counted(quota):
            key = counted.key
            # A quota of placeholders alone leaves people out.
            at_once = max(AT_ONCE, booked) if counts_users(quota) else 0
            for_people = at_once * counted.per_placeholder
            needed = counted.taken + for_people + seats * counted.per_placeholder
            if needed <= counted.most:
                continue
            left = counted.most - counted.taken - for_people
            fits = max(0, min(seats, left // counted.per_placeholder))
            reason = (
                f"{named('ResourceQuota', [quota])}: {amount_in_words(key, counted.most)} {key}"
                f" allowed, {amount_in_words(key, counted.taken)} used, {booked} people booked:"
                f" {fits} of {seats} placeholders are kept, so that people find room."
            )
            yield reason, f"Ask for {amount_in_words(key, needed)} {key}."

    def _counted(self, quota: JSONObject) -> Iterator[_CountedKey]:
        """Each key of a quota that counts a placeholder."""
        used = (quota.get("status") or {}).get("used") or {}
        for key, hard in sorted((quota["spec"].get("hard") or {}).items()):
            kind, _, name = key.removeprefix("count/").partition(".")
            name = name or kind
            amount = (self._limits if kind == "limits" else self._requests).get(name)
            if amount:
                most = round_up(name, parse_quantity(hard))
                taken = round_up(name, parse_quantity(used.get(key, 0)))
                yield _CountedKey(key, name, amount, most=most, taken=taken)

    def _refused(self, quota: JSONObject, people: int) -> Iterator[tuple[str, str]]:
        fits = people
        wanted = []
        for counted in self._counted(quota):
            room = (counted.most - counted.taken) // counted.per_placeholder
            if room < people:
                fits = min(fits, max(0, room))
                needed = counted.taken + people * counted.per_placeholder
                wanted.append(f"{counted.key} to {show_amount(counted.resource, needed)}")
        if wanted:
            reason = (
                f"{named('ResourceQuota', [quota])} has room for {fits} of {people}"
                " placeholders now"
            )
            yield f"{reason}; others are refused.", f"Raise {', '.join(wanted)}."

    def _pools(self, client: Client) -> dict[str, int]:
        """How many each pool that may be the set's holds at most; empty: nobody knows."""
        pools = {
            node.name: next((node.labels[key] for key in POOL_LABELS if key in node.labels), "")
            for node in self._nodes
        }
        own = {pools[node.name] for node in self._own}
        theirs = {pools[node.name] for node in self._nodes if node.is_usable} - own - {""}
        found: dict[str, tuple[str, int]] = {}
        for body in (client.find(NODE_POOLS) or {}).get("items", ()):
            limits = body["spec"].get("limits") or {}
            name = body["metadata"]["name"]
            amounts = {key: round_up(key, parse_quantity(limits[key])) for key in limits}
            bounds = [amounts[key] // n for key, n in self._requests.items() if key in amounts]
            if "nodes" in amounts:
                bounds.append(amounts["nodes"] * self.per_node)
            found[f"NodePool {name}"] = name, min(bounds, default=_NO_LIMIT)
        status = ((client.find(AUTOSCALER_STATUS) or {}).get("data") or {}).get("status", "")
        with suppress(ForeignTextError, AttributeError, KeyError, TypeError):
            for group in load_foreign(status)["nodeGroups"]:
                # Providers end a group's name with the pool's, and letters of their own.
                ends = [
                    (match.end(), len(pool), pool)
                    for pool in {*pools.values()} - {""}
                    for match in re.finditer(
                        rf"(?<![a-z0-9]){re.escape(pool)}(?![a-z0-9])", group["name"]
                    )
                ]
                # The pool whose name ends last; of those that end there, the longest.
                _, _, pool_of_group = max(ends, default=(0, 0, ""))
                most = group["health"]["maxSize"] * self.per_node
                found[f"Node group {group['name'].rpartition('/')[2]}"] = pool_of_group, most
        is_known = own <= {pool for pool, _ in found.values()} - {""}
        return {
            name: most for name, (pool, most) in found.items() if is_known and pool not in theirs
        }


def _amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    """What a pod that requests this takes of a node, without what is 0."""
    spec = {"containers": [{"resources": {"requests": quantities}}]}
    return {name: amount for name, amount in read_requests(spec) if amount}
