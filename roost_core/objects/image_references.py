"""Read image references: normalise and shorten them, and find their repository.

Source of the normal form: ParseDockerRef of github.com/distribution/reference. By this form
containerd, and so the kubelet, decides whether two references name the same image. The same code in
other languages is in `chart/templates/_names.tpl`, and for benchmarks in
`lab/benchmarks/go/internal/policy/policy.go`.

Three functions have the spellings of an image: `ManagedImage.spellings` in
`roost_core/release/image_gate.py` for a node's list, `_spellings` in
`generator/render/functions.py` for a pod, and `spellings` in
`lab/roost_lab/recorder/answers/pod_story.py` for the record.
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
# A label's name has at most 63 characters. A dash and eight digits of a hash follow the short name.
_MAX_SHORT_NAME: Final = 54
_DEFAULT_REGISTRY: Final = "docker.io"
# Docker Hub's former name, which still means docker.io. Docker Hub's server registry-1.docker.io
# doesn't mean it: for containerd it is another registry.
_LEGACY_DEFAULT_REGISTRY: Final = "index.docker.io"
# If the first part of a reference has one of these, it is a registry: a dot or a colon, as in a
# host's name, or a capital letter, which no repository has.
_IN_REGISTRY: Final = re.compile(r"[.:A-Z]")


def is_reference(text: str) -> bool:
    """Whether it is a valid image reference. For any other text, the container waits for ever with
    InvalidImageName.
    """
    return _REFERENCE.fullmatch(text) is not None


def split_reference(reference: str) -> tuple[str, str, str]:
    """Split into repository, tag and digest; the tag and the digest are "" if they are absent.

    The repository begins with the registry, with its port, if the reference names a registry.
    """
    named, _, digest = reference.partition("@")
    head, slash, last = named.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}{slash}{name}", tag, digest


def names_registry(reference: str) -> bool:
    """Whether a reference begins with a registry.

    If not, the node's runtime chooses the registry.
    """
    registry, slash, _ = split_reference(reference)[0].partition("/")
    return bool(slash) and (registry == "localhost" or _IN_REGISTRY.search(registry) is not None)


def normalise_reference(reference: str) -> str:
    """Return the full form: registry, `library/` for Docker Hub's own images, a tag or a digest.

    Without tag and digest, the tag is `latest`. With a digest, the tag is left out, because only
    the digest decides what is pulled.
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
