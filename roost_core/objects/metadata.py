"""Keep what programs read of objects' metadata, in little memory for thousands of objects."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, Final

# The domain of Roost's and of hubs' labels and annotations.
DOMAIN: Final = "hub.jupyter.org"
_AUTOSCALER_PREFIXES: Final = ("cluster-autoscaler.kubernetes.io/", "karpenter.sh/")
_NO_ANNOTATIONS: Final[Mapping[str, str]] = {}


def kept_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return the annotations that Roost may read: its own, a hub's or an autoscaler's."""
    kept = {
        key: value
        for key, value in annotations.items()
        if DOMAIN in key or key.startswith(_AUTOSCALER_PREFIXES)
    }
    # Thousands of objects have none: they share an empty map.
    return kept or _NO_ANNOTATIONS


def labels_of(item: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels of an object as the API server sends it."""
    return item["metadata"].get("labels") or {}


def intern_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same labels with interned strings: thousands of objects have equal labels."""
    if not labels:
        return labels
    return {intern(key): intern(value) for key, value in labels.items()}
