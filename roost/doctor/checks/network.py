"""No NetworkPolicy of the namespace keeps the API server's reviews from the webhook."""

from roost.doctor.conditions import UNREVIEWED
from roost.doctor.evidence import label_items, some
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install
from roost_core.kube.client import list_all
from roost_core.objects.fields import JSONObject
from roost_core.objects.selectors import read_label_selector, selector_matches


def check(install: Install) -> CheckReport:
    webhook = install.component("webhook")
    port = install.values["webhook"]["port"]
    yield "NetworkPolicies of the webhook's pods" if webhook is not None else "no webhook is used"
    if webhook is None or webhook["spec"]["template"]["spec"].get("hostNetwork"):
        return
    labels = label_items(webhook["spec"]["template"])
    path = f"/apis/networking.k8s.io/v1/namespaces/{install.release.namespace}/networkpolicies"
    matching = [
        policy
        for policy in list_all(install.client, path)
        if selector_matches(read_label_selector(policy["spec"].get("podSelector") or {}), labels)
        and "Ingress" in (policy["spec"].get("policyTypes") or ["Ingress"])
    ]
    if matching and not any(_lets_all_reach(policy, port) for policy in matching):
        names = [policy["metadata"]["name"] for policy in matching]
        yield warning(
            f"NetworkPolicies limit who reaches the webhook's port {port} ({some(names)}), and none"
            " lets every address do so. The API server comes from an address of the control"
            " plane.",
            "Name its addresses in networkPolicy.ingress.webhookReviews (and leave"
            " networkPolicy.enabled on), or nothing to let all reach it. The check admission tells"
            " whether it gets through.",
            UNREVIEWED,
        )


def _lets_all_reach(policy: JSONObject, port: int) -> bool:
    open_to_all = [rule for rule in policy["spec"].get("ingress") or [] if not rule.get("from")]
    return any(
        _has_port(allowed, port) for rule in open_to_all for allowed in rule.get("ports") or [{}]
    )


def _has_port(given: JSONObject, port: int) -> bool:
    """Whether an entry of a rule's ports lets requests to a port through."""
    least = given.get("port")
    if least is None:
        return True
    # A port's name, which only the pod's own containers give a number.
    if type(least) is not int:
        return False
    is_tcp: bool = given.get("protocol", "TCP") == "TCP"
    in_range: bool = least <= port <= given.get("endPort", least)
    return is_tcp and in_range
