"""Read image references: normalise them, shorten them, tell their repository.

Source of the normal form: distribution/reference's rules as Docker and containerd apply them.
"""

from __future__ import annotations

import re
from typing import Final

_NOT_IN_LABEL: Final = re.compile(r"[^A-Za-z0-9]+")
# 63 for the name part of a label, less a dash and eight digits of hash.
_MAX_SHORT_NAME: Final = 54


def split_reference(reference: str) -> tuple[str, str, str]:
    """Split into repository, tag and digest; the last two are "" when absent. The registry's port is no tag."""
    rest, _, digest = reference.partition("@")
    head, slash, last = rest.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}{slash}{name}", tag, digest


def normalise_reference(reference: str) -> str:
    """Give the full form: registry, `library/` for Docker's own, tag `latest` when there is neither tag nor digest."""
    repository, tag, digest = split_reference(reference)
    first, slash, _ = repository.partition("/")
    if not slash:
        repository = f"docker.io/library/{repository}"
    elif "." not in first and ":" not in first and first != "localhost":
        repository = f"docker.io/{repository}"
    if digest:
        return f"{repository}@{digest}"
    return f"{repository}:{tag or 'latest'}"


def short_name(normalised: str) -> str:
    """The last part of a reference, readable in a label: letters, digits and dashes, at most 54 characters."""
    last = normalised.rpartition("/")[2].partition("@")[0]
    name = _NOT_IN_LABEL.sub("-", last)[:_MAX_SHORT_NAME].strip("-")
    return name or "image"


def image_repository(reference: str) -> str:
    """The reference without tag and digest, normalised: BinderHub makes one a repository."""
    normalised = normalise_reference(reference)
    return split_reference(normalised)[0]
