"""The webhook places pods by the rules of these values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost.doctor.contract import Finding, Install, Object, Told
from roost.doctor.evidence import TRIED, labels_of, name_of, namespace_of, path_of
from roost.doctor.try_pod import make_pod, try_pod
from roost_core.kube.client import ApiError
from roost_core.placement.labels import RELEASE_KEY
from roost_core.release.reader import SettingsError
from webhook.settings import read_settings

if TYPE_CHECKING:
    from roost_core.release.settings import ReleaseSettings


def check(install: Install) -> Told:
    rendered = next((body for body in install.of_kind("ConfigMap") if RELEASE_KEY in (body.get("data") or {})), None)
    if rendered is None or install.component("webhook") is None:
        yield "no webhook is used"
        return
    classes = [one for name, one in install.values["podClasses"].items() if name in TRIED and labels_of(one)]
    yield f"rules in {name_of(rendered)}"
    live = install.client.find(path_of(rendered))
    if live is None:
        return  # the check objects says so, and what differs
    try:
        settings = _settings_of(live)
    except SettingsError as error:
        yield Finding(
            "error",
            f"{name_of(live)} is refused, so the webhook keeps the rules that it had: {error.one_line()}",
            "Correct in the values what is named, and apply them again.",
        )
        return
    for one in classes:
        namespace = namespace_of(install, one)
        try:
            pod = make_pod({"metadata": {"labels": labels_of(one)}})
            revision = try_pod(install.client, namespace, pod).revision if namespace else ""
        except ApiError:
            continue  # the same request as that of the check admission, which tells of it
        if revision and revision != settings.revision:
            yield Finding(
                "warning",
                f"The webhook places pods by revision {revision}, and {name_of(live)} has {settings.revision}.",
                "Kubelets take about a minute to bring a change. Longer: the webhook's log and /readyz say why it "
                "keeps the old rules (docs/troubleshooting.md#is-the-webhook-healthy).",
            )
            return


def _settings_of(config_map: Object) -> ReleaseSettings:
    """The rules in a ConfigMap. Raises SettingsError."""
    return read_settings(str((config_map.get("data") or {}).get(RELEASE_KEY) or "").encode())
