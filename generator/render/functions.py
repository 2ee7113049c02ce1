"""All that a template may call: how values are printed and read, and the names of objects.

Twin of `tools/compile/expressions.py`: whatever a filter or function here gives, the Go template
that the compiler writes gives too, so `roost render` and `helm template` agree. Hence Go's rules: a
missing key reads as nil (None), an attribute of nil is a fault, numbers print as Go's encoding/json
prints a float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

from generator.package_data import chart_folder
from generator.render import go_json
from generator.render.kube_scheduler import SCHEDULER_GATES, SCHEDULER_TAGS, minor_of_tag
from generator.render.managed_images import managed_images, profile_seats, puller_groups
from generator.values.release_name import Release, kube_minor
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.metadata import DOMAIN
from roost_core.objects.node import HOSTNAME_LABEL
from roost_core.placement import labels
from roost_core.release.image_gate import IMAGE_VOLUME_MINOR

# What templates name so: `keys.opt_out`. The compiler writes it out as constants.
KEYS: Final[Mapping[str, object]] = MappingProxyType(
    {
        "opt_out": labels.OPT_OUT_ANNOTATION,
        "policy_revision": labels.POLICY_REVISION_ANNOTATION,
        "placeholder_set": labels.PLACEHOLDER_SET_LABEL,
        "user_class": labels.USER_CLASS,
        "namespace_name": labels.NAMESPACE_NAME_LABEL,
        "hostname": HOSTNAME_LABEL,
        "domain": DOMAIN,
        "puller": labels.OWN_PULLER,
        "puller_set": labels.PULLER_SET_LABEL,
        "popular_puller": labels.OWN_POPULAR_PULLER,
        "popular_image": labels.POPULAR_IMAGE_ANNOTATION,
        "popular_node": labels.POPULAR_NODE_ANNOTATION,
        "popular_bytes": labels.POPULAR_BYTES_ANNOTATION,
        "safe_to_evict": labels.SAFE_TO_EVICT_ANNOTATION,
        "hub_bookings": labels.HUB_BOOKINGS,
        "losable_volumes": labels.SAFE_TO_EVICT_VOLUMES_ANNOTATION,
        "strict": labels.STRICT_SUFFIX,
        "scheduler_tags": SCHEDULER_TAGS,
        "scheduler_gates": SCHEDULER_GATES,
    }
)

# What `placeholder.defaults` says nothing of. Its twin: `roost.placeholder_sets` in
# chart/templates/_helpers.tpl.
_SET_DEFAULTS: Final[Mapping[str, object]] = MappingProxyType({"windows": [], "learn": None})


class Chart(NamedTuple):
    """Versions from Chart.yaml: the chart's, and the programs'."""

    version: str
    app_version: str


class TemplateError(Exception):
    """A template can't be rendered with these values.

    Names the template; the text is for an operator.
    """

    def __init__(self, message: str, template: str = "") -> None:
        super().__init__(f"{template}: {message}" if template else message)


# --- printing
# --------------------------------------------------------------------------------------------------


def to_json(value: object) -> str:
    """As `go_json.to_json`. Raises TemplateError: the value can't be printed as JSON."""
    try:
        return go_json.to_json(value)
    except ValueError as error:
        raise TemplateError(str(error)) from None


def to_pretty_json(value: object) -> str:
    """JSON over several lines, indented by two. Sprig's `toPrettyJson`."""
    try:
        return "".join(go_json.encode(value, "\n", "  ", ": "))
    except ValueError as error:
        raise TemplateError(str(error)) from None


def indent(text: str, width: int) -> str:
    """Put `width` spaces before every line, the first one too. Sprig's `indent`."""
    pad = " " * width
    return pad + text.replace("\n", f"\n{pad}")


def replace(text: str, old: str, new: str) -> str:
    """Put `new` wherever `old` stands. Sprig's `replace`."""
    return text.replace(old, new)


def to_int(value: object) -> int:
    """Cut a number to an integer. Sprig's `int64`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TemplateError(f"found {value!r} where a number is needed")
    return int(value)


def items(value: object) -> list[tuple[str, object]]:
    """Key and value of each entry by sorted key, as Go's `range` goes through a map; nil is
    empty.
    """
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise TemplateError(f"found {value!r} where a map is needed")
    return sorted(value.items(), key=lambda item: item[0])


def each(value: object) -> Sequence[object]:
    """What a `for` goes through: a list; nil is empty, as for Go's `range`."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise TemplateError(f"found {value!r} where a list is needed")


def default(value: object, fallback: object) -> object:
    """`fallback` when the value is missing or nil; 0, false and "" stay (unlike Sprig's
    `default`).
    """
    return fallback if value is None else value


def sha256_of(text: str) -> str:
    """SHA-256 of a text, in hex. Sprig's `sha256sum`."""
    return sha256(text.encode()).hexdigest()


def merge(*maps: Mapping[str, object] | None) -> dict[str, object]:
    """Put maps together, not deep; a later map's entry wins, nil is empty."""
    merged: dict[str, object] = {}
    for mapping in maps:
        merged.update(mapping or {})
    return merged


def core_pod(common: object, own: object) -> dict[str, object]:
    """Give `corePods` as one component has it: mappings merged with its own, anything else replaced
    by it.
    """
    shared = dict(items(common))
    return _laid_over(shared, {key: value for key, value in items(own) if key in shared})


def _laid_over(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            merged[key] = _laid_over(under, value)
        elif value is not None:
            merged[key] = value
    return merged


def concat(*lists: Sequence[object]) -> list[object]:
    """Put lists together. Sprig's `concat`."""
    return [item for entries in lists for item in each(entries)]


def secret_names(secrets: object) -> list[str]:
    """The names of pull secrets, which are written as a name or, as in a pod, as {name: NAME}."""
    entries = secrets if isinstance(secrets, list) else []
    return [
        str(entry.get("name", "")) if isinstance(entry, Mapping) else str(entry)
        for entry in entries
    ]


def unique(entries: object) -> list[object]:
    """Each entry of a list once. Sprig's `uniq`."""
    kept: list[object] = []
    for entry in each(entries):
        if entry not in kept:
            kept.append(entry)
    return kept


def fail(message: str) -> NoReturn:
    """Stop: these values can't be rendered. Sprig's `fail`."""
    raise TemplateError(message)


def read_key(obj: object, key: object) -> object:
    """Read a key of a map; None when it is missing, as Go does."""
    if not isinstance(key, str):
        raise TemplateError(f"key {key!r} is not a string")
    if isinstance(obj, Mapping):
        return obj.get(key)
    raise TemplateError(f"key {key!r} of {'nil' if obj is None else repr(obj)}, which is not a map")


def minor_for_cluster(by_minor: Mapping[str, object], cluster: tuple[int, int]) -> str:
    """Pick the newest minor that the cluster has reached, else the oldest; "" when there is
    none.
    """
    minors = sorted(by_minor, key=kube_minor)
    reached = [minor for minor in minors if kube_minor(minor) <= cluster]
    if reached:
        return reached[-1]
    return minors[0] if minors else ""


def for_cluster(by_minor: Mapping[str, object], cluster: tuple[int, int]) -> object:
    """Pick the entry of `minor_for_cluster`."""
    return by_minor.get(minor_for_cluster(by_minor, cluster), "")


def minor_for_tag(by_minor: Mapping[str, object], tag: str, cluster: tuple[int, int]) -> str:
    """Pick the newest minor that a kube-scheduler with this tag has reached; the cluster's where
    the tag says none.
    """
    minor = minor_of_tag(tag)
    return minor_for_cluster(by_minor, cluster if minor is None else (1, minor))


def puller_method(method: object, cluster: tuple[int, int]) -> object:
    """`prePuller.method` for this cluster; for `auto`: image volumes if they are on by default."""
    if method != "auto":
        return method
    return "imageVolume" if cluster >= IMAGE_VOLUME_MINOR else "noop"


def in_registry(registry: object, image: str) -> str:
    """An image that Roost runs, with its whole name below `registry` (`imageRegistry`), if that is
    set.
    """
    return f"{registry}/{image}" if registry else image


def own_image(image: object, app_version: str) -> str:
    """An image of Roost's own, of `image` or `recorder.image` in the values: by digest where one is
    given.
    """
    name = read_key(image, "name")
    digest = read_key(image, "digest")
    return f"{name}@{digest}" if digest else f"{name}:{read_key(image, 'tag') or app_version}"


def pulled_labels(
    release: str, namespace: str, singleuser: object, puller: object
) -> dict[str, str]:
    """Give the node label of each image that the puller brings, by each way to write that image."""
    by_reference: dict[str, str] = {}
    for full in managed_images(singleuser, puller):
        label = labels.pulled_label(release, namespace, full)
        by_reference.update(dict.fromkeys(_spellings(full), label))
    return by_reference


def _spellings(full: str) -> list[str]:
    """Each way to write an image. full: its normalised reference."""
    spellings: list[str] = []
    path = full.removeprefix("docker.io/")
    for form in (full, path, path.removeprefix("library/")):
        for prefix in ("", "docker.io/", "index.docker.io/"):
            written = f"{prefix}{form}"
            # A part that looks like a registry can't lose its own: docker.io/a.b/c isn't a.b/c.
            if normalise_reference(written) == full:
                spellings += [written, written.removesuffix(":latest")]
    return spellings


def placeholder_sets(base: str, sets: object, defaults: object) -> list[dict[str, object]]:
    """Give each set of `placeholders` with its StatefulSet's name, and with the defaults of what it
    doesn't name.
    """
    completed = []
    for entry in each(sets):
        name = read_key(entry, "name")
        stateful_set = labels.object_name(base, f"placeholder-{name}", labels.MAX_STATEFULSET_NAME)
        completed.append({**complete_placeholder_set(entry, defaults), "statefulSet": stateful_set})
    return completed


def complete_placeholder_set(entry: object, defaults: object) -> dict[str, object]:
    """Lay one entry of `placeholders` over `placeholder.defaults`: a key that it names counts as a
    whole.
    """
    named = {key: value for key, value in items(entry) if value is not None}
    return {**_SET_DEFAULTS, **dict(items(defaults)), **named}


def chart_file(name: str) -> str:
    """Give the text of a file of the chart. Helm's `.Files.Get`."""
    return (chart_folder() / name).read_text(encoding="utf-8")


def pullers(base: str, singleuser: object, puller: object) -> list[dict[str, object]]:
    """Give each DaemonSet of the puller: its name, where its users may go, its images in order of
    use.
    """
    return [
        {
            "name": labels.object_name(base, group.component),
            "nodeSelector": group.node_selector,
            "tolerations": list(group.tolerations),
            "requiredNodeTerms": list(group.required_terms),
            "images": list(group.images),
        }
        for group in puller_groups(singleuser, puller)
    ]


def context(values: Mapping[str, object], release: Release, chart: Chart) -> dict[str, object]:
    """All that a template sees: `values`, `release`, `chart`, `keys`, and the functions the
    compiler knows too.
    """
    name = release.name
    namespace = release.namespace
    cluster_minor = release.kube_minor
    base = labels.base_name(name, values.get("fullnameOverride"))

    def object_name(component: str, limit: int = labels.MAX_LABEL_NAME) -> str:
        return labels.object_name(base, component, limit)

    def image_of_ours(image: object) -> str:
        return in_registry(values.get("imageRegistry"), own_image(image, chart.app_version))

    def pause_image() -> str:
        image = read_key(values["placeholder"], "image")
        return in_registry(
            values.get("imageRegistry"), f"{read_key(image, 'name')}:{read_key(image, 'tag')}"
        )

    # Several templates ask for it, and there may be much to go through.
    made = pullers(base, values.get("singleuser"), values.get("prePuller"))
    of_release: Sequence[Callable[..., object]] = (
        labels.cluster_object_name,
        labels.scheduler_name,
        labels.dashboard_uid,
        labels.attract_label,
        labels.pulled_label,
        labels.startup_taint,
        labels.pulled_prefix,
        labels.attract_prefix,
        pulled_labels,
    )
    functions: dict[str, Callable[..., object]] = {
        **{function.__name__: partial(function, name, namespace) for function in of_release},
        "kube_at_least": lambda version: cluster_minor >= kube_minor(version),
        "object_name": object_name,
        "puller_container": labels.puller_container,
        "popular_prefix": lambda: labels.popular_prefix(name),
        "profile_seats": profile_seats,
        # Helm needs the arguments. They are always the values that `made` was made from.
        "pullers": lambda *_: made,
        "for_cluster": lambda by_minor: for_cluster(by_minor, cluster_minor),
        "minor_for_tag": lambda by_minor, tag: minor_for_tag(by_minor, tag, cluster_minor),
        "in_registry": lambda image: in_registry(values.get("imageRegistry"), image),
        "own_image": lambda: image_of_ours(values["image"]),
        "lab_image": lambda: image_of_ours(read_key(values["recorder"], "image")),
        "pause_image": pause_image,
        "puller_method": lambda: puller_method(
            read_key(values["prePuller"], "method"), cluster_minor
        ),
        "placeholder_sets": partial(placeholder_sets, base),
        "merge": merge,
        "core_pod": core_pod,
        "concat": concat,
        "chart_file": chart_file,
        "secret_names": secret_names,
        "unique": unique,
        "fail": fail,
    }
    about = {"version": chart.version, "app_version": chart.app_version}
    names = {"name": name, "namespace": namespace}
    return {"values": values, "release": names, "chart": about, "keys": KEYS, **functions}
