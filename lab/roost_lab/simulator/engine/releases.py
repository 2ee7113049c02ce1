"""Hold each hub's own release in a replay: its webhook, controllers and placeholders, rendered for
its namespace.

Hubs of one trace share nodes, scheduler model and kubelets. As in a cluster, each has a release of
its own, so the values' placeholders are there once for each hub, and a hub's webhook sees other
hubs' pods only with `sharedPools`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from roost_lab.simulator.engine.controllers import ClusterChanges, Controls
from roost_lab.simulator.engine.placeholder_sets import PlaceholderSets
from roost_lab.simulator.engine.pods import PLACEHOLDER, PodMaker
from roost_lab.simulator.engine.results import HubResult
from roost_lab.simulator.engine.webhook_facts import WebhookFacts

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod
    from roost_lab.simulator.engine.cluster import Cluster
    from roost_lab.simulator.engine.entities import SimPod
    from roost_lab.simulator.engine.kubelets import Kubelets
    from roost_lab.simulator.setup.policy import PlaceholderStatefulSet, Policy


class PlaceholderLife(ClusterChanges, Protocol):
    """What a release asks for: placeholders that come and go, and its controllers' changes."""

    def next_number(self) -> int:
        """A number that no other pod has."""

    def post(self, kind: str, state: Pod) -> SimPod:
        """Create a pod."""

    def remove(self, pod: SimPod) -> None:
        """Delete a pod."""


class HubRelease:
    """One hub's release."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        labels: Mapping[str, Mapping[str, str]],
        *,
        kubelets: Kubelets,
        pods: PlaceholderLife,
    ) -> None:
        """policy: as rendered for its namespace. labels: of all namespaces."""
        self._cluster = cluster
        self._pods = pods
        self.policy = policy
        self.maker = PodMaker(policy, cluster.assumed, labels)
        self.facts = WebhookFacts(policy, self.maker, labels)
        self.sets = PlaceholderSets(policy.placeholders, self.post_placeholder, pods.remove)
        self.controls = Controls(
            cluster, policy, maker=self.maker, sets=self.sets, kubelets=kubelets, changes=pods
        )
        # Admitted launches whose servers wait or run: by repository, and all.
        self.of_repository: Counter[str] = Counter()
        self.running = 0
        self.result = HubResult()

    def post_placeholder(self, placeholders: PlaceholderStatefulSet, name: str) -> SimPod:
        """Create a pod of a set of placeholders."""
        cluster = self._cluster
        made = self.maker.placeholder(placeholders, name, cluster.now, self.facts.current())
        return self._pods.post(PLACEHOLDER, replace(made, uid=f"{name}#{self._pods.next_number()}"))


def policies_of(
    policy: Policy, hubs: Sequence[str], others: Mapping[str, Policy] | None = None
) -> list[Policy]:
    """The policy as each hub of a trace has it; with one hub or none as it is, whatever the hub is
    called.

    hubs: their namespaces; "": the policy's own. others: hubs with another policy, by namespace.
    Raises as load_policy does.
    """
    if len(hubs) < 2:
        return [policy]
    # A namespace may be named, and be the policy's own as well.
    of_hub = others or {}
    return [
        of_hub.get(namespace, policy).in_namespace(namespace)
        for namespace in dict.fromkeys(hub or policy.namespace for hub in hubs)
    ]


def joined(policies: Sequence[Policy]) -> Policy:
    """What all hubs' releases are together for schedulers and new nodes."""
    first, *others = policies
    if not others:
        return first
    profiles = {name: profile for policy in policies for name, profile in policy.profiles.items()}
    taints = tuple(taint for policy in policies for taint in policy.startup_taints)
    return replace(first, profiles=profiles, startup_taints=taints)
