"""What `admission.mode: policy` can't do, the one table of it.

MutatingAdmissionPolicies read a pod and its namespace, and nothing else: no node, no other pod, no
program. The values' check warns by this table, and the simulator replays by it. The policies
themselves are in templates/shared/admission-policies.yaml.j2; tests hold them to the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from roost_core.release.image_gate import GateMode
from roost_core.release.pod_classes import TIE_BREAK

# (1, 36) for 1.36: MutatingAdmissionPolicy is v1 from here on.
POLICY_MINOR: Final = (1, 36)
# Why `imageGate.mode: requireLabel` only prefers: what is required must stop being required when
# the controllers that label nodes die.
GATE_REASON: Final = (
    "an admission policy can't see whether the controllers run: the gate only prefers nodes with"
    " the image."
)


class LeftOut(NamedTuple):
    """A key of a class that policies don't follow."""

    key: str
    # They treat every class as if the key had this value.
    value: object
    # What an operator is told who uses the key; "": nothing, the default classes have it.
    reason: str = ""
    # Whether a class that has it by default is worth the same words.
    says_of_defaults: bool = False


LEFT_OUT: Final = (
    LeftOut(
        "home",
        None,
        "admission policies don't know builders: pods of this class get no home.",
        says_of_defaults=True,
    ),
    LeftOut(
        "warm", None, "admission policies don't know nodes: pods of this class get no warm set."
    ),
    # A quota could refuse the pod, and policies can't read quotas.
    LeftOut("resources", {}),
)


def class_by_policy(pod_class: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of `podClasses` as policies follow it.

    A term that breaks ties is left out, too: policies can't know whether it would do more.
    """
    avoid: Mapping[str, int] = pod_class.get("avoid") or {}
    return {
        **pod_class,
        **{part.key: part.value for part in LEFT_OUT},
        "avoid": {other: weight for other, weight in avoid.items() if weight != TIE_BREAK},
    }


def gate_mode_by_policy(mode: str, *, has_labels: bool) -> str:
    """`imageGate.mode` as policies follow it. has_labels: whether controllers label nodes."""
    if mode != GateMode.REQUIRE_LABEL:
        return mode
    return str(GateMode.PREFER if has_labels else GateMode.OFF)
