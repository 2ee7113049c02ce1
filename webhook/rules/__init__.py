"""The rules of admission, in one table. docs/architecture.md says how to add a rule.

A file for each rule, and the keys of a class (`podClasses.<class>`) that it follows:

- `revision.py`, `scheduler.py` (`profile`);
- `prefer_images.py`, `require_images.py` (`imageGate`), with what they share: `image_gate.py`;
- `failed_pulls.py`, `warm.py` (`warm`), `home.py` (`home`);
- `preferred_nodes.py` (`preferredNodeTerms`), `marked_node.py`;
- `join_and_avoid.py` (`join`, `avoid`);
- `requests.py` (`resources`).

`contract.py` says what a rule is. `preemption.py` is no rule: two rules ask it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from roost_core.release.class_of_pod import Classes
from roost_core.release.pod_classes import PodClass
from roost_core.release.release_settings import ReleaseSettings
from webhook.bounds import MAX_ANSWER_BYTES
from webhook.rules import (
    failed_pulls,
    home,
    join_and_avoid,
    marked_node,
    prefer_images,
    preferred_nodes,
    requests,
    require_images,
    revision,
    scheduler,
    warm,
)
from webhook.rules.contract import Reads, Rule

# In the order in which they are applied. Their terms stand in a pod in the same order.
RULES: Final[tuple[Rule, ...]] = (
    revision.RULE,
    scheduler.RULE,
    prefer_images.RULE,
    require_images.RULE,
    failed_pulls.RULE,
    warm.RULE,
    home.RULE,
    preferred_nodes.RULE,
    marked_node.RULE,
    join_and_avoid.RULE,
    requests.RULE,
)


def unread_keys(settings: ReleaseSettings) -> list[str]:
    """Keys of classes that no rule reads. They are typing errors."""
    known = {key for rule in RULES for key in rule.keys}
    return [
        f"podClasses.{name}.{key}"
        for name, pod_class in settings.classes.items()
        for key in pod_class.more.keys() - known
    ]


class Rulebook:
    """The rules of one `ReleaseSettings`, by class."""

    def __init__(self, settings: ReleaseSettings) -> None:
        self.settings = settings
        self.classes = Classes(settings.namespace, settings.classes)
        self.rules: Mapping[str, Sequence[Rule]] = {
            name: [rule for rule in RULES if rule.applies(settings, pod_class)]
            for name, pod_class in settings.classes.items()
        }
        # Classes whose answers would be too long, whatever the pod. The class's terms may fill half
        # of an answer. The other half is for the pod's parts and for names of nodes.
        self.classes_too_long = {
            name
            for name, pod_class in settings.classes.items()
            if self._bytes_of(pod_class) > MAX_ANSWER_BYTES // 2
        }

    def _bytes_of(self, pod_class: PodClass) -> int:
        """Bytes of the terms that the values give to each pod of a class."""
        classes = self.settings.classes
        terms: list[object] = [*pod_class.preferred_node_terms]
        for name in (*pod_class.join, *pod_class.avoid):
            if name in classes:
                other = classes[name]
                namespaces = self.settings.shared_namespaces or other.namespace_selector
                terms += [other.labels, namespaces]
        return len(orjson.dumps(terms, default=dict))

    def reads(self, class_name: str) -> Reads:
        """All facts that the rules of a class read."""
        reads = Reads.NOTHING
        for rule in self.rules[class_name]:
            reads |= rule.reads
        return reads

    def classes_that_read(self, part: Reads) -> list[str]:
        """The classes with a rule that reads this part of the facts."""
        return [name for name in self.settings.classes if part in self.reads(name)]
