"""Look through every object of a cluster for what a release has left behind."""

import json
from collections.abc import Iterator

from roost_core.objects.fields import JSONObject
from tests.harness.api import Api, ApiError

# What Kubernetes itself puts into every namespace, and what happened there.
EVERYWHERE = {("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")}
HISTORY = ("events",)


def all_objects(api: Api) -> Iterator[tuple[str, JSONObject]]:
    """Every object of every kind that can be listed, with its resource's name; each once, though
    groups overlap.
    """
    versions = ["/api/v1"]
    versions += [
        f"/apis/{group['preferredVersion']['groupVersion']}" for group in api.get("/apis")["groups"]
    ]
    seen: set[str] = set()
    for version in versions:
        for resource in api.get(version)["resources"]:
            if "/" in resource["name"] or "list" not in resource["verbs"]:
                continue
            try:
                items = api.list(f"{version}/{resource['name']}")
            except ApiError as error:
                if error.status in (404, 405):  # a kind that went meanwhile, or only looks like one
                    continue
                raise
            for item in items:
                uid = item["metadata"].get("uid")
                if uid is None or uid not in seen:
                    seen.add(uid)
                    yield resource["name"], item


def leftovers(api: Api, namespace: str, keep: frozenset[str] = frozenset()) -> list[str]:
    """What still is in a namespace, or names it from elsewhere: in words, each with its place.

    keep: names of objects of the test itself. The namespace's name must be one that nothing else
    has a part of.
    """
    found = []
    for resource, item in all_objects(api):
        metadata = item["metadata"]
        name = metadata["name"]
        if resource in HISTORY or name in keep or (resource, name) == ("namespaces", namespace):
            continue
        if metadata.get("namespace") == namespace:
            if (resource, name) not in EVERYWHERE:
                found.append(f"{resource}/{name} in the namespace")
            continue
        # Whoever wrote an object stays noted there: a history, as Events are.
        bare = {
            **item,
            "metadata": {key: value for key, value in metadata.items() if key != "managedFields"},
        }
        if namespace in json.dumps(bare):
            found.append(
                f"{resource}/{metadata.get('namespace', '')}/{name}: {_where(bare, namespace)}"
            )
    return found


def _where(item: object, text: str, path: str = "") -> str:
    if isinstance(item, dict):
        parts = [f"{path}.{key}" for key in item if text in key]
        parts += [_where(value, text, f"{path}.{key}") for key, value in item.items()]
        return ", ".join(part for part in parts if part)
    if isinstance(item, list):
        return ", ".join(
            part
            for index, value in enumerate(item)
            if (part := _where(value, text, f"{path}[{index}]"))
        )
    return path if isinstance(item, str) and text in item else ""
