"""What a rule of admission is given, what it may yield, and what a rule is.

A rule takes one pod, the settings and the facts, and yields what should change. It does no I/O,
reads no clock and changes none of these; `webhook.patch` implements the changes, and omits what the
pod already has. `webhook/rules/preferred_nodes.py` is the example to copy.
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

    Of what the pod's author wrote it contains names only.
    """

    topic: str
    text: str
    # Also return it as a warning to the client that creates the pod.
    is_warning: bool = False
    # In a word, for metrics: why the rule doesn't do what it is for.
    reason: str = ""


# Topics whose reasons are counted.
GATE_TOPIC: Final = "gate"
SCHEDULER_TOPIC: Final = "scheduler"

RuleResult = Change | Note


class Reads(Flag):
    """The parts of the facts that a rule reads: they are watched, and can change what the rule
    yields.
    """

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
    """What a rule yields for a pod, the classes it is for, and the facts it reads.

    A rule that yields nothing for a pod yields nothing for it whatever the facts are.
    """

    apply: Callable[[Case], Iterable[RuleResult]]
    applies: Callable[[ReleaseSettings, PodClass], bool]
    reads: Reads = Reads.NOTHING
    # Keys of `podClasses.<class>` that only this rule reads, from `PodClass.more`.
    keys: tuple[str, ...] = ()
