"""What an admission rule is, what it gets, and what it may yield.

A rule gets a pod, the settings and the facts, and yields what should change in the pod. It does no
I/O, reads no clock, and changes nothing that it gets. `webhook.patch` makes the changes, and leaves
out what the pod already has. `webhook/rules/preferred_nodes.py` is the example to copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Flag, auto
from typing import Final, NamedTuple

from roost_core.objects.pod_body import PodBody
from roost_core.release.pod_classes import PodClass
from roost_core.release.release_settings import ReleaseSettings
from webhook.facts.facts import Facts
from webhook.patch import Change


class Note(NamedTuple):
    """What a rule did or couldn't do, for the audit log.

    It quotes nothing that the pod's author wrote, except names.
    """

    topic: str
    text: str
    # Whether the client that creates the pod gets it as a warning, too.
    is_warning: bool = False
    # Why the rule couldn't do its work, in a word for metrics.
    reason: str = ""


# Topics whose reasons are counted.
GATE_TOPIC: Final = "gate"
SCHEDULER_TOPIC: Final = "scheduler"

RuleResult = Change | Note


class Reads(Flag):
    """The parts of the facts that a rule reads. Only parts that some rule reads are watched."""

    NOTHING = 0
    NODES = auto()
    BUILDERS = auto()
    WARM = auto()
    LEASES = auto()
    PRIORITIES = auto()
    QUOTAS = auto()
    PULLS = auto()


class Case(NamedTuple):
    """One pod, with everything that its rules can read."""

    pod: PodBody
    pod_class: PodClass
    settings: ReleaseSettings
    facts: Facts
    # Seconds of a monotonic clock.
    now: float


class Rule(NamedTuple):
    """An admission rule: what it yields for a pod, for which classes it is, which facts it reads.

    If a rule yields nothing for a pod, it would yield nothing whatever the facts were.
    """

    apply: Callable[[Case], Iterable[RuleResult]]
    applies: Callable[[ReleaseSettings, PodClass], bool]
    reads: Reads = Reads.NOTHING
    # Keys of `podClasses.<class>` that only this rule reads, from `PodClass.more`.
    keys: tuple[str, ...] = ()
