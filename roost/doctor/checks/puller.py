"""The puller runs on every node that users run on.

Then the next node of that kind has the image before users come.
"""

from roost.doctor.evidence import count, labelled, some, users_of
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install


def check(install: Install) -> CheckReport:
    selectors = [body["spec"]["selector"]["matchLabels"] for body in install.of_kind("DaemonSet")]
    nodes = {
        pod["spec"]["nodeName"]
        for pod in users_of(install)
        if (pod.get("spec") or {}).get("nodeName")
    }
    if not selectors:
        yield "no puller is used"
        return
    yield f"{count(len(nodes), 'node')} with users"
    served = {
        pod["spec"].get("nodeName")
        for selector in selectors
        for pod in labelled(install.pods, selector)
    }
    without_puller = sorted(nodes - served)
    if without_puller:
        yield warning(
            f"Users run on nodes that no pod of the puller is on: {some(without_puller)}. On a new"
            " node of that kind they start cold.",
            "The puller's tolerations and node selector don't admit them: name their taints in the"
            " profile's tolerations, or in prePuller.tolerations"
            " (docs/puller.md#which-nodes-get-which-images). Or a quota or a LimitRange's `min`"
            " refuses its pods (kubectl describe daemonset): set prePuller.resources.",
        )
