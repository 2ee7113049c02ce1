"""Find by which tool an install was made, and how to install again with the same tool.

The managers of the objects' fields show the tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from roost.doctor.install import Install
from roost_core.objects.fields import JSONObject

_OF_OBJECTS: Final = "Are --release, --namespace and -f those of the install? If so, "
# Beginnings of the field managers of tools that apply what a repository or another object says.
_FOLLOWERS: Final = {
    "argocd": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "fleet": "Fleet",
}
_HELM: Final = "helm"
_CLIENT_SIDE: Final = "kubectl-client-side-apply"
_SERVER_SIDE: Final = "Apply"
_UPDATERS: Final = (_HELM, _CLIENT_SIDE, *_FOLLOWERS)


def installers_of(live: JSONObject) -> set[str]:
    """The field managers of an object that install it, without people who edit by hand.

    When the values no longer render a field, these managers remove it.
    """
    installers: set[str] = set()
    for entry in live["metadata"].get("managedFields") or []:
        manager = str(entry.get("manager", ""))
        if entry.get("operation") == _SERVER_SIDE or manager.startswith(_UPDATERS):
            installers.add(manager)
    return installers


def apply_again(install: Install, live: Iterable[JSONObject]) -> str:
    """What to do so that the cluster has what the values render.

    live: objects of the release as the API server has them.
    """
    return f"{_OF_OBJECTS}{command_of(install, live)}."


def command_of(install: Install, live: Iterable[JSONObject]) -> str:
    """The command that installs again, or what to do instead, as a clause without a full stop."""
    managers = {
        (str(entry.get("manager", "")), str(entry.get("operation", "")))
        for body in live
        for entry in body["metadata"].get("managedFields") or []
        if not entry.get("subresource")
    }
    name = install.release.name
    namespace = install.release.namespace
    for manager, _ in sorted(managers):
        for start, tool in _FOLLOWERS.items():
            if manager.startswith(start):
                return f"let {tool} apply it again: what was changed by hand stays until then"
    helm = f"helm upgrade {name} CHART --namespace {namespace} -f VALUES"
    render = f"roost render -f VALUES --release {name} --namespace {namespace}"
    if (_HELM, _SERVER_SIDE) in managers:
        # Helm 4: a field that somebody else has changed is a conflict.
        return f"`{helm} --force-conflicts`"
    if any(manager == _HELM for manager, _ in managers):
        return f"`{helm}`"
    if ("kubectl", _SERVER_SIDE) in managers:
        return f"`{render} | kubectl apply --server-side --force-conflicts -f -`"
    if any(manager == _CLIENT_SIDE for manager, _ in managers):
        return f"`{render} | kubectl apply -f -`"
    return "apply it again"
