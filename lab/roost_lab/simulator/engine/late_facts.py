"""Show the webhook what changes in the cluster only after a delay."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from roost_lab.simulator.engine.webhook_facts import WebhookFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roost_core.objects.node import Node
    from roost_lab.simulator.engine.entities import SimPod
    from roost_lab.simulator.engine.pods import PodMaker
    from roost_lab.simulator.setup.policy import Policy
    from webhook.facts import Facts


class LateFacts(WebhookFacts):
    """Facts that are `delay_seconds` old. The homes that the webhook itself gave are in its ledger at once."""

    def __init__(
        self,
        policy: Policy,
        maker: PodMaker,
        labels: Mapping[str, Mapping[str, str]],
        delay_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(policy, maker, labels)
        self._delay_seconds, self._clock = delay_seconds, clock
        # Changes under way, in order of time: when they are known, and what makes them known.
        self._coming: deque[tuple[float, Callable[[], None]]] = deque()

    def tell_pod(self, pod: SimPod) -> None:
        """A pod was created or bound, or its containers run."""
        # As of now: it may be ready before this is known.
        tell_warm = partial(self.tell_warm, pod, pod.state, is_starting=pod.ready_at is None)
        if not pod.state.node_name:
            self.tell_home(pod, pod.state)
            self._later(tell_warm)
            return
        self._later(partial(self.tell_home, pod, pod.state))
        self._later(tell_warm)

    def forget_pod(self, pod: SimPod) -> None:
        """A pod was deleted."""
        self._later(partial(super().forget_pod, pod))

    def tell_node(self, name: str, node: Node | None) -> None:
        """A node changed; None: it was removed."""
        self._later(partial(super().tell_node, name, node))

    def current(self) -> Facts:
        """The facts as they were."""
        coming, now = self._coming, self._clock()
        while coming and coming[0][0] <= now:
            coming.popleft()[1]()
        return super().current()

    def _later(self, what: Callable[[], None]) -> None:
        self._coming.append((self._clock() + self._delay_seconds, what))
