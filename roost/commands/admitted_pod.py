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
from roost.commands.pod_file import left_out
from roost.doctor.try_pod import make_pod
from roost_core.objects.fields import MalformedObjectError
from roost_core.objects.pod_body import read_pod_body
from roost_core.placement.labels import NAMESPACE_NAME_LABEL
from webhook.admission import decide
from webhook.facts.facts import Facts


def admitted_pod(options: RenderOptions, given: dict[str, Any]) -> str:
    """The pod in YAML as the webhook would admit it with these values, as far as it says so without
    a cluster. Raises UsageError.
    """
    rules = read_rules(
        by_kind(read_values(options.files, options.settings).values, options.release)
    )
    if rules is None:
        return "# These values have no webhook: the pod stays as it is.\n"
    body = make_pod(given)
    # Where the pod says that it is; of that namespace's labels its name alone is known.
    namespace = text(child(given, "metadata", "namespace")) or options.release.namespace
    facts = Facts(namespaces={namespace: {NAMESPACE_NAME_LABEL: namespace}})
    try:
        pod = read_pod_body(body, namespace)
        decision = decide(pod, rules, facts, now=0.0)
    except MalformedObjectError as error:
        raise UsageError(f"--pod: {error}.") from None
    notes = [f"{key}: {text}" for key, text in decision.audit.items()] or [
        "no class: the pod stays as it is"
    ]
    notes += filter(None, [left_out(body)])
    admitted = jsonpatch.apply_patch(body, list(decision.operations))
    return "".join(
        [*(f"# {sentence}\n" for sentence in notes), yaml.safe_dump(admitted, sort_keys=False)]
    )
