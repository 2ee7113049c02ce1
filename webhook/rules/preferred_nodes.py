"""Add the class's preferred node terms. The simplest rule: copy it for a new one.

A rule is a function from a `Case` to what should change (`webhook.patch`), or to what should be
noted (`webhook.rules.contract`). `RULE` says for which classes it is, and which facts it reads:
these are watched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.patch import PreferNode
from webhook.rules.contract import Case, Rule


def prefer_nodes(case: Case) -> Iterator[PreferNode]:
    """Prefer what `podClasses.<class>.preferredNodeTerms` prefers."""
    for term in case.pod_class.preferred_node_terms:
        yield PreferNode(dict(term))


RULE: Final = Rule(prefer_nodes, lambda _settings, pod_class: bool(pod_class.preferred_node_terms))
