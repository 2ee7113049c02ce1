"""What `admission.mode: policy` can't do.

MutatingAdmissionPolicies read a pod and its namespace. They can't read nodes or other pods, and
can't ask a program. By the table below, `roost validate` warns, and the simulator replays. The
policies are in templates/shared/admission-policies.yaml.j2. Tests compare them with the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from roost_core.release.image_gate import GateMode
from roost_core.release.pod_classes import TIE_BREAK

# From Kubernetes 1.36 on, MutatingAdmissionPolicy is in v1 of its API.
POLICY_MINOR: Final = (1, 36)
# Why a policy follows `imageGate.mode: requireLabel` as `prefer`. When the controllers that label
# nodes stop, users' pods must no longer require the labels, and a policy can't know that.
GATE_REASON: Final = (
    "an admission policy can't see whether the controllers run: the gate only prefers nodes with"
    " the image."
)


class LeftOut(NamedTuple):
    """A key of `podClasses` that policies don't follow."""

    key: str
    # Policies treat each class as if the key had this value.
    value: object
    # The warning to operators whose values have the key; "": no warning.
    reason: str = ""
    # Whether a class that has the key by default is warned of, too.
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
    # With more resources, a quota could refuse the pod, and policies can't read quotas. There is no
    # warning, because the default classes have the key.
    LeftOut("resources", {}),
)


def class_by_policy(pod_class: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of `podClasses` as policies follow it.

    Terms of `avoid` that only break ties are left out, too: policies can't know whether a term
    would change more than a tie.
    """
    avoid: Mapping[str, int] = pod_class.get("avoid") or {}
    return {
        **pod_class,
        **{part.key: part.value for part in LEFT_OUT},
        "avoid": {other: weight for other, weight in avoid.items() if weight != TIE_BREAK},
    }


def gate_mode_by_policy(mode: str, *, has_labels: bool) -> str:
    """`imageGate.mode` as policies follow it. has_labels: whether controllers label the nodes."""
    if mode != GateMode.REQUIRE_LABEL:
        return mode
    return str(GateMode.PREFER if has_labels else GateMode.OFF)
