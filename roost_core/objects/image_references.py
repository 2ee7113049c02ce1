"""Read image references: normalise and shorten them, and find their repository.

Source of the normal form: ParseDockerRef of github.com/distribution/reference, by which containerd,
and so the kubelet, tells whether two references name one image. Its twins are in
`chart/templates/_names.tpl` and, for benchmarks, in `lab/benchmarks/go/internal/policy/policy.go`.

How a node's list may spell a managed image: `ManagedImage.spellings` in
`roost_core/release/image_gate.py`; a pod: `_spellings` in `generator/render/functions.py`; the
record: `spellings` in `lab/roost_lab/recorder/answers/pod_story.py`.
"""

import re
from typing import Final

_HOST: Final = "[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*"
_PART: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"(?:{_HOST}(?:\.{_HOST})*(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64}|@sha512:[0-9a-f]{128})?",
    re.ASCII,
)
_NOT_IN_LABEL: Final = re.compile(r"[^A-Za-z0-9]+")
# 63 for the name part of a label, less a dash and eight digits of hash.
_MAX_SHORT_NAME: Final = 54
_DEFAULT_REGISTRY: Final = "docker.io"
# Docker Hub's former name, which still means docker.io. registry-1.docker.io, which serves its
# images, doesn't: for containerd it is a registry like any other.
_LEGACY_DEFAULT_REGISTRY: Final = "index.docker.io"
# A part with one of these is a registry: a dot or a colon as in a host's name, or a capital, which
# no repository has.
_IN_REGISTRY: Final = re.compile(r"[.:A-Z]")


def is_reference(text: str) -> bool:
    """Whether a kubelet can pull it: of any other the container waits with InvalidImageName."""
    return _REFERENCE.fullmatch(text) is not None


def split_reference(reference: str) -> tuple[str, str, str]:
    """Split into repository, tag and digest; the last two are "" when absent.

    A registry's port is not a tag.
    """
    named, _, digest = reference.partition("@")
    head, slash, last = named.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}{slash}{name}", tag, digest


def names_registry(reference: str) -> bool:
    """Whether a reference begins with a registry; without one, the runtime chooses it."""
    registry, slash, _ = split_reference(reference)[0].partition("/")
    return bool(slash) and (registry == "localhost" or _IN_REGISTRY.search(registry) is not None)


def normalise_reference(reference: str) -> str:
    """Return the full form: registry, `library/` for Docker Hub's own images, a tag or a digest.

    Without either the tag is `latest`; beside a digest the tag goes, since the digest alone tells
    what is pulled.
    """
    repository, tag, digest = split_reference(reference)
    registry = _DEFAULT_REGISTRY
    path = repository
    if names_registry(reference):
        registry, _, path = repository.partition("/")
    if registry == _LEGACY_DEFAULT_REGISTRY:
        registry = _DEFAULT_REGISTRY
    if registry == _DEFAULT_REGISTRY and "/" not in path:
        path = f"library/{path}"
    repository = f"{registry}/{path}"
    if digest:
        return f"{repository}@{digest}"
    return f"{repository}:{tag or 'latest'}"


def short_name(normalised: str) -> str:
    """Return the last part of a reference, for use in a label: letters, digits and dashes, at most
    54 characters.
    """
    last = normalised.rpartition("/")[2].partition("@")[0]
    name = _NOT_IN_LABEL.sub("-", last)[:_MAX_SHORT_NAME].strip("-")
    return name or "image"


def image_repository(reference: str) -> str:
    """Return the normalised reference without tag and digest: BinderHub uses one per repository."""
    normalised = normalise_reference(reference)
    return split_reference(normalised)[0]
