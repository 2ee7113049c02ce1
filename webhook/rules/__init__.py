"""The rules of admission, one file each, and the table of them.

Copy `preferred_nodes.py` for a new one, and add it here. A key of its own below `podClasses.<class>` goes into the
chart (`values.yaml`, `values.schema.json`) and into `Rule.keys`; the rule finds it in `PodClass.more`.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from roost_core.release.classes import Classes
from webhook.rules import (
    home,
    marked_node,
    pod_terms,
    prefer_images,
    preferred_nodes,
    requests,
    require_images,
    revision,
    scheduler,
    warm,
)
from webhook.rules.contract import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost_core.release.settings import ReleaseSettings

# In the order in which they are applied, and in which their terms stand in a pod.
RULES: Final[tuple[Rule, ...]] = (
    revision.RULE,
    scheduler.RULE,
    prefer_images.RULE,
    require_images.RULE,
    warm.RULE,
    home.RULE,
    preferred_nodes.RULE,
    marked_node.RULE,
    pod_terms.RULE,
    requests.RULE,
)


def unread_keys(settings: ReleaseSettings) -> list[str]:
    """Keys of classes that no rule reads: typing errors."""
    known = {key for rule in RULES for key in rule.keys}
    return [f"podClasses.{name}.{key}" for name, each in settings.classes.items() for key in each.more.keys() - known]


class Rulebook:
    """The rules of one `ReleaseSettings`, by class."""

    def __init__(self, settings: ReleaseSettings) -> None:
        self.settings = settings
        self.classes = Classes(settings.namespace, settings.classes)
        self.rules: Mapping[str, Sequence[Rule]] = {
            name: [rule for rule in RULES if rule.applies(settings, pod_class)]
            for name, pod_class in settings.classes.items()
        }

    def reads(self, class_name: str) -> Reads:
        """The facts that the rules of a class read, together."""
        return reduce(or_, (rule.reads for rule in self.rules[class_name]), Reads.NOTHING)
