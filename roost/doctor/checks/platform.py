"""What this provider is known to need is set."""

from typing import Final

from roost.doctor.evidence import GKE_SCHEDULER, path_of
from roost.doctor.findings import CheckReport, error, warning
from roost.doctor.install import Install
from roost_core.placement.priorities import AUTOSCALER_CUTOFF

# The scheme of a node's spec.providerID.
_PROVIDERS: Final = {"gce": "GKE", "aws": "EKS", "azure": "AKS"}
# The ports of nodes that the firewall of a GKE private cluster opens to its control plane.
_GKE_PORTS: Final = (443, 10250)
_FIXED: Final = ("runAsUser", "runAsGroup", "fsGroup")


def check(install: Install) -> CheckReport:
    provider = _provider(install)
    yield provider or "no provider that needs something of its own"
    needs = {"OpenShift": _find_openshift, "GKE": _find_gke, "EKS": _find_eks, "AKS": _find_aks}
    if provider:
        yield from needs[provider](install)


def _provider(install: Install) -> str:
    groups = install.client.find("/apis") or {}
    if any(group.get("name") == "security.openshift.io" for group in groups.get("groups", [])):
        return "OpenShift"
    schemes = {node.provider_id.partition("://")[0] for node in install.nodes}
    return next((name for scheme, name in _PROVIDERS.items() if scheme in schemes), "")


def _find_openshift(install: Install) -> CheckReport:
    fixed = [key for key in _FIXED if key in install.values["podSecurityContext"]]
    if fixed:
        yield error(
            "OpenShift's restricted-v2 gives each namespace users of its own, and"
            f" podSecurityContext fixes {', '.join(fixed)}.",
            f"podSecurityContext: {{{', '.join(f'{key}: null' for key in fixed)}}}, or grant the"
            " accounts nonroot-v2.",
        )


def _find_gke(install: Install) -> CheckReport:
    webhook = install.component("webhook")
    port = install.values["webhook"]["port"]
    if webhook is not None and port not in _GKE_PORTS and not _is_installed(install):
        yield warning(
            "In a private cluster the firewall lets the control plane reach ports 443 and 10250 of"
            f" nodes only, and the webhook has port {port}. Pods would be created without Roost.",
            f"Add a firewall rule for TCP {port} from the control plane's range to the nodes "
            "(docs/how-to/clouds.md#private-clusters).",
        )
    mutated = [
        pod["metadata"]["name"]
        for pod in install.pods
        if pod["spec"].get("schedulerName") == GKE_SCHEDULER
    ]
    is_replaced = GKE_SCHEDULER in install.values["replaceSchedulers"]
    if install.component("scheduler") is not None and mutated and not is_replaced:
        yield warning(
            f"GKE's profile optimize-utilization names its own scheduler in {len(mutated)} pods of"
            " the hub.",
            f"replaceSchedulers: [{GKE_SCHEDULER}], or scheduler.target: gke.",
        )
    priority = install.values["priorityClasses"]["placeholder"]
    if install.values["priorityClasses"]["enabled"] and priority < AUTOSCALER_CUTOFF:
        yield error(
            f"GKE's autoscaler ignores pods below priority {AUTOSCALER_CUTOFF}; placeholders have"
            f" {priority}, so none makes a node come.",
            f"priorityClasses.placeholder: {AUTOSCALER_CUTOFF}",
        )


def _find_eks(install: Install) -> CheckReport:
    webhook = install.component("webhook")
    if (
        webhook is None
        or webhook["spec"]["template"]["spec"].get("hostNetwork")
        or install.values["webhook"]["url"]
    ):
        return
    # EKS Auto Mode has Amazon's plugin without a DaemonSet.
    is_auto = all(
        node.labels.get("eks.amazonaws.com/compute-type") == "auto" for node in install.nodes
    )
    if (
        not is_auto
        and install.client.find("/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node") is None
    ):
        yield warning(
            "There is no DaemonSet aws-node, so pods have addresses of another network plugin,"
            " which EKS's control plane may not reach. Pods would be created without Roost.",
            "webhook: {hostNetwork: true}, unless the plugin routes pods' addresses in the VPC "
            "(docs/how-to/clouds.md#with-another-network-plugin).",
        )


def _find_aks(install: Install) -> CheckReport:
    # Afterwards the check startup-taints sees what became of the taint.
    if install.values["imageGate"]["mode"] == "startupTaint" and not _is_installed(install):
        yield warning(
            "imageGate.mode is startupTaint, and the taints of an AKS node pool can't be removed"
            " through Kubernetes: as one of these, the startup taint keeps users off its nodes for"
            " good.",
            "Give it as a node initialization taint (docs/how-to/clouds.md#the-startup-taint), or"
            " use imageGate.mode: requireLabel.",
        )


def _is_installed(install: Install) -> bool:
    """Whether the release is there: then the check admission tells what a firewall does."""
    return any(
        install.client.find(path_of(body))
        for body in install.of_kind("MutatingWebhookConfiguration")
    )
