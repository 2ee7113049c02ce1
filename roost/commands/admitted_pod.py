"""A pod as the webhook would admit it, for `roost validate --pod`."""

from __future__ import annotations

from typing import Any

import jsonpatch
import yaml

from generator.faults import UsageError
from generator.values.files import read_values
from generator.values.lookups import child, text
from roost.commands.hub_trial import by_kind, read_rules
from roost.commands.options import RenderOptions
from roost.commands.pod_file import unchecked_part
from roost.doctor.try_pod import make_pod
from roost_core.objects.fields import MalformedObjectError
from roost_core.objects.pod_body import read_pod_body
from roost_core.placement.labels import NAMESPACE_NAME_LABEL
from webhook.admission import decide
from webhook.facts.facts import Facts


def admitted_pod(options: RenderOptions, given: dict[str, Any]) -> str:
    """The pod as the webhook would admit it with these values, if it knew nothing of a cluster.

    Returns YAML, after comments that name the decisions. Raises UsageError.
    """
    values = read_values(options.files, options.settings).values
    rules = read_rules(by_kind(values, options.release))
    if rules is None:
        return "# These values have no webhook: the pod stays as it is.\n"
    body = make_pod(given)
    # The namespace that the pod names. Of its labels, only the label with its name is known.
    namespace = text(child(given, "metadata", "namespace")) or options.release.namespace
    facts = Facts(namespaces={namespace: {NAMESPACE_NAME_LABEL: namespace}})
    try:
        pod = read_pod_body(body, namespace)
        decision = decide(pod, rules, facts, now=0.0)
    except MalformedObjectError as error:
        raise UsageError(f"--pod: {error}.") from None
    notes = [f"{key}: {text}" for key, text in decision.audit.items()]
    if not notes:
        notes.append("no class: the pod stays as it is")
    unchecked = unchecked_part(body)
    if unchecked:
        notes.append(unchecked)
    comments = "".join(f"# {note}\n" for note in notes)
    admitted = jsonpatch.apply_patch(body, list(decision.operations))
    return comments + yaml.safe_dump(admitted, sort_keys=False)
