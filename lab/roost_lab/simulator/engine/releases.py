"""Give each hub of a replay its release: a webhook, controllers and placeholders in its namespace.

The hubs of a trace share nodes, the scheduler's model and kubelets. As in a cluster, each hub has
its release. So there are the values' placeholders once for each hub. A hub's webhook sees other
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
    """What a release asks the world to do: create and delete pods, and its controllers' changes."""

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
        """policy: rendered for the hub's namespace. labels: of all hubs' namespaces, by name."""
        self._cluster = cluster
        self._pods = pods
        self.policy = policy
        self.maker = PodMaker(policy, cluster.assumed, labels)
        self.facts = WebhookFacts(policy, self.maker, labels)
        self.sets = PlaceholderSets(policy.placeholders, self.post_placeholder, pods.remove)
        self.controls = Controls(
            cluster, policy, maker=self.maker, sets=self.sets, kubelets=kubelets, changes=pods
        )
        # Repository -> its admitted launches whose servers wait or run.
        self.of_repository: Counter[str] = Counter()
        # The number of all these launches.
        self.running = 0
        self.result = HubResult()

    def post_placeholder(self, placeholders: PlaceholderStatefulSet, name: str) -> SimPod:
        """Create a pod of a set of placeholders."""
        cluster = self._cluster
        made = self.maker.placeholder(placeholders, name, cluster.now, self.facts.current())
        # A set gives a new pod the name of the one before: only the uid tells them apart.
        pod = replace(made, uid=f"{name}#{self._pods.next_number()}")
        return self._pods.post(PLACEHOLDER, pod)


def policies_of(
    policy: Policy, hubs: Sequence[str], others: Mapping[str, Policy] | None = None
) -> list[Policy]:
    """The policy of each hub of a trace, rendered for the hub's namespace.

    With one hub or none, the policy stays as it is, whatever the hub is called.

    hubs: their namespaces; "": the policy's own. others: namespace -> another policy for its hub.
    Raises as load_policy does.
    """
    if len(hubs) < 2:
        return [policy]
    others = others or {}
    # Without repetitions: a trace may also name the policy's own namespace.
    namespaces = dict.fromkeys(hub or policy.namespace for hub in hubs)
    return [others.get(namespace, policy).in_namespace(namespace) for namespace in namespaces]


def joined(policies: Sequence[Policy]) -> Policy:
    """All hubs' policies in one: their schedulers' profiles, and the startup taints of new nodes.

    The rest is the first hub's.
    """
    first, *others = policies
    if not others:
        return first
    profiles = dict(first.profiles)
    startup_taints = first.startup_taints
    for policy in others:
        profiles |= policy.profiles
        startup_taints += policy.startup_taints
    return replace(first, profiles=profiles, startup_taints=startup_taints)
