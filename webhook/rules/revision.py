"""Annotate the pod with the revision of the policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roost_core.placement.labels import POLICY_REVISION_ANNOTATION
from webhook.patch import Annotate
from webhook.rules.contract import Case, Rule


def name_revision(case: Case) -> Iterator[Annotate]:
    """Write the policy's revision on the pod, so that readers know which policy placed it."""
    yield Annotate(POLICY_REVISION_ANNOTATION, case.settings.revision)


RULE: Final = Rule(name_revision, lambda _settings, _pod_class: True)
