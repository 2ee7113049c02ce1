"""No PodDisruptionBudget beside Roost's covers its pods: a pod that two cover can't be evicted at all."""

from roost.doctor.contract import Install, Told, warning
from roost.doctor.evidence import label_items, pod_templates
from roost_core.objects.selectors import read_label_selector, selector_matches


def check(install: Install) -> Told:
    own = {body["metadata"]["name"]: body["spec"].get("selector") for body in install.of_kind("PodDisruptionBudget")}
    templates = pod_templates(install)
    yield f"PodDisruptionBudgets in {install.release.namespace}"
    path = f"/apis/policy/v1/namespaces/{install.release.namespace}/poddisruptionbudgets"
    for budget in install.client.get(path)["items"]:
        name = budget["metadata"]["name"]
        if name in own:
            continue
        for workload, template in templates:
            labels = label_items(template)
            if not selector_matches(read_label_selector(budget["spec"].get("selector")), labels):
                continue
            if any(selector_matches(read_label_selector(selector), labels) for selector in own.values()):
                yield warning(
                    f"PodDisruptionBudget {name} covers pods of {workload}, which have one of Roost's: a pod that "
                    "two cover is never evicted, so nodes can't be drained and placeholders not moved.",
                    "Narrow its selector, for example by app.kubernetes.io/part-of, or switch Roost's off "
                    "(corePods.pdb.enabled).",
                )
            elif not (budget.get("status") or {}).get("disruptionsAllowed", 1):
                yield warning(
                    f"PodDisruptionBudget {name} lets no pod of {workload} be evicted now.",
                    "Narrow its selector, or allow a disruption more.",
                )
