"""Make one release's values of many hubs' values, and say hub by hub what changes and what it
costs.

Each hub is imported by itself. Images come together with their nodes, placeholder sets by pool and
size, names of schedulers and pull Secrets as lists. Of everything else a release has one value:
that of most hubs. A hub that had another one is named with both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from generator.faults import Fault, ValuesError, one_line, some
from generator.importing.hub_folders import HubFiles
from generator.importing.importer import faults_of, import_layers
from generator.importing.result import ImportResult, free_name, put_at
from generator.importing.source import HubPath, show_key
from generator.importing.user_sizes import NODE_KEYS
from generator.importing.yaml_printer import print_yaml
from generator.render.functions import complete_placeholder_set
from generator.render.go_json import to_json
from generator.render.managed_images import PullerGroup, puller_groups
from generator.values.files import read_defaults
from generator.values.lookups import child, listing
from generator.values.merge import coalesce
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import NAMESPACE_NAME_LABEL, USER_CLASS

Values = Mapping[str, Any]

# On the hubs' namespaces, which the release finds by it. A list of their names would be in each
# user's pod, as its terms carry the selector.
USERS_LABEL: Final = "hub.jupyter.org/users"
# United in a way of their own.
_UNITED: Final[tuple[HubPath, ...]] = (
    ("singleuser",),
    ("prePuller", "extraImages"),
    ("prePuller", "pullProfileListImages"),
    ("prePuller", "tolerations"),
    ("placeholders",),
    ("placeholder", "defaults"),
    ("replaceSchedulers",),
    ("imagePullSecrets",),
    # Pullers of other namespaces than the release's aren't seen: the release has pullers of its
    # own, or none.
    ("imageGate", "pullerPods"),
)
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAX_NAME: Final = 30


class ImportedHub(NamedTuple):
    """One hub: what was imported of it alone, and Roost's whole values for it."""

    name: str
    result: ImportResult
    values: Values


@dataclass(slots=True)
class ManyHubs:
    """One release's values for many hubs, and the report on them."""

    hubs: list[ImportedHub]
    values: dict[str, Any] = field(default_factory=dict)
    comments: dict[HubPath, list[str]] = field(default_factory=dict)
    # By hub: what it had otherwise than the release will have it.
    differences: dict[str, list[str]] = field(default_factory=dict)
    # What was left out, and why.
    left_out: list[str] = field(default_factory=list)
    # What `roost validate` says of the values; errors only if the hubs can't be united.
    faults: list[Fault] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        """Whether Roost takes the values."""
        return not any(fault.severity == "error" for fault in self.faults)

    def to_yaml(self) -> str:
        """The values as a commented document."""
        made_of = (
            f"Made by `roost import` from {len(self.hubs)} hubs: one release for all, in a"
            " namespace of its own."
        )
        only = (
            "Only what differs from Roost's defaults. Each hub's namespace is taken to be"
            " called like the hub:"
        )
        commands = [
            f"  kubectl label namespace {target} {USERS_LABEL}=true"
            for target in self._kubectl_targets()
        ]
        commented = "".join(f"# {one_line(line)}\n" for line in (made_of, only, *commands))
        return commented + print_yaml(self.values, self.comments)

    def _kubectl_targets(self) -> list[str]:
        """Namespaces of users and builds, each text as the argument of a kubectl command: first all
        names, then an option -l for each selector.
        """
        names: list[str] = []
        selectors: list[str] = []
        for hub in self.hubs:
            for pod_class in (USER_CLASS, "build"):
                match = ("podClasses", pod_class, "match", "namespaceSelector", "matchLabels")
                labels = child(hub.result.values, *match)
                if not isinstance(labels, dict):
                    labels = {NAMESPACE_NAME_LABEL: hub.name}
                if labels.keys() == {NAMESPACE_NAME_LABEL}:
                    names += labels.values()
                else:
                    pairs = ",".join(f"{key}={value}" for key, value in labels.items())
                    selectors.append(f"-l {pairs}")
        return [" ".join(dict.fromkeys(names)), *dict.fromkeys(selectors)]

    def report(self) -> str:
        """The report for stderr: what was left out, what to switch off and didn't map, and a table
        of hubs.
        """
        lines = [f"left out: {line}" for line in self.left_out]
        lines += self._grouped(
            "not mapped", lambda result: [f"{note.key}: {note.reason}" for note in result.unmapped]
        )
        lines += self._grouped("switch off", lambda result: result.switch_off)
        lines += self._grouped("keep on", lambda result: result.keep)
        lines += self._grouped("alone", lambda result: result.verdict)
        lines += [str(fault) for fault in self.faults]
        return "".join(f"{one_line(line)}\n" for line in (*lines, *self._table()))

    def _grouped(self, prefix: str, lines_of: Callable[[ImportResult], Iterable[str]]) -> list[str]:
        """Lines of hubs' results, each once, with the hubs that have it."""
        names: dict[str, list[str]] = {}
        for hub in self.hubs:
            for line in lines_of(hub.result):
                having = names.setdefault(line, [])
                if hub.name not in having:
                    having.append(hub.name)
        grouped = []
        for line, having in names.items():
            whose = "all hubs" if len(having) == len(self.hubs) else some(having)
            grouped.append(f"{prefix}: {line} ({whose})")
        return grouped

    def _table(self) -> Iterator[str]:
        release: Values = coalesce(self.values, read_defaults().values)
        placeholders = _placeholders_by_pool(release)
        images = _images_by_nodes(release)
        rows = [("hub", "placeholders", "images brought", "what changes for it")]
        for hub in self.hubs:
            has_pullers = hub.values["prePuller"]["enabled"] or release["prePuller"]["enabled"]
            rows.append(
                (
                    hub.name,
                    _show_placeholders(hub.values, placeholders),
                    _show_images(hub.values, images) if has_pullers else "none",
                    "; ".join(self._changes_for(hub)) or "nothing",
                )
            )
        # The last column isn't padded.
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for *cells, changes in rows:
            padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
            yield "  ".join([*padded, changes])

    def _changes_for(self, hub: ImportedHub) -> list[str]:
        changes = list(self.differences.get(hub.name, []))
        if "scheduler" in hub.result.replaced:
            changes.insert(0, "its users get Roost's scheduler in place of the hub's")
        return changes


def _show_placeholders(hub_values: Values, in_release: Counter[str]) -> str:
    """The number of a hub's placeholders; with more in its pools in the release, as "5 of 20
    shared".

    in_release: how many the release has, by pool.
    """
    of_hub = _placeholders_by_pool(hub_values)
    had = of_hub.total()
    shared = sum(in_release[pool] for pool in of_hub)
    return f"{had} of {shared} shared" if had < shared else str(had)


def _show_images(hub_values: Values, in_release: Mapping[str, set[str]]) -> str:
    """How many images came to a hub's nodes, and how many come there now.

    in_release: the images that the release brings, by nodes.
    """
    of_hub = _images_by_nodes(hub_values)
    before: set[str] = set().union(*of_hub.values())
    now: set[str] = set().union(*(in_release.get(nodes, set()) for nodes in of_hub))
    return f"{len(before)} -> {len(now | before)}" if now else "none"


def import_many(files: Sequence[HubFiles], attempt: Callable[[ImportResult], None]) -> ManyHubs:
    """Import each hub, and unite them. The report names a hub that can't be imported; it is left
    out.

    attempt: tries a hub's values on made pods of its users. Raises ValuesError when no hub is left.
    """
    many = ManyHubs([])
    faults: list[Fault] = []
    for hub in files:
        try:
            if not _NAMESPACE.fullmatch(hub.name):
                many.left_out.append(
                    f"{hub.name}: no namespace can be called so. Rename its file or folder."
                )
                continue
            result = import_layers(hub.layers, usual_release=hub.name)
            attempt(result)
            whole_values = coalesce(result.values, read_defaults().values)
            many.hubs.append(ImportedHub(hub.name, result, whole_values))
        except ValuesError as error:
            faults += error.faults
            many.left_out += [f"{hub.name}: {fault}" for fault in error.faults]
    if not many.hubs:
        raise ValuesError(faults)
    _unite(many)
    return many


def _unite(many: ManyHubs) -> None:
    defaults = read_defaults().values
    hubs = many.hubs
    for path in sorted({path for hub in hubs for path in _leaves(hub.result.values)}):
        _put_most(many, path, defaults)
    _unite_lists(many)
    _unite_images(many, defaults)
    _unite_placeholders(many, defaults)
    for name in (USER_CLASS, "build"):
        if child(coalesce(many.values, defaults), "podClasses", name) is not None:
            selector = {"matchLabels": {USERS_LABEL: "true"}}
            put_at(many.values, ("podClasses", name, "match", "namespaceSelector"), selector)
    # In the order of the defaults.
    order = dict.fromkeys((*defaults, *many.values))
    many.values = {key: many.values[key] for key in order if key in many.values}
    many.faults = faults_of(many.values)
    if child(many.values, "scheduler", "target") == "none":
        _keep_on(hubs, "scheduler", "scheduler.target: none")
    if child(many.values, "prePuller", "enabled") is False:
        _keep_on(hubs, "puller", "prePuller.enabled: false")


def _keep_on(hubs: Iterable[ImportedHub], part: str, key: str) -> None:
    for hub in hubs:
        hub.result.keep_on(part, f"most hubs have none, so Roost has none ({key})")


def _put_most(many: ManyHubs, path: HubPath, defaults: Values) -> None:
    """Put what most hubs have at a path, and note what changes for the others."""
    values = {hub.name: child(hub.values, *path) for hub in many.hubs}
    # By hub, and comparable.
    texts = {name: to_json(value) for name, value in values.items()}
    default = to_json(child(defaults, *path))
    hubs_with = Counter(texts.values())
    # Of values that equally many hubs have, Roost's default.
    most = max(hubs_with, key=lambda text: (hubs_with[text], text == default))
    first = next(hub for hub in many.hubs if texts[hub.name] == most)
    chosen = values[first.name]
    if most != default:
        put_at(many.values, path, chosen)
        comments = first.result.comments.get(path)
        if comments:
            many.comments[path] = list(comments)
    for name, value in values.items():
        if texts[name] != most:
            many.differences.setdefault(name, []).append(
                f"{show_key(path)}: {_short(value)} -> {_short(chosen)}"
            )


def _unite_lists(many: ManyHubs) -> None:
    for path in (
        ("replaceSchedulers",),
        ("imagePullSecrets",),
        ("singleuser", "image", "pullSecrets"),
    ):
        items: dict[object, None] = {}
        for hub in many.hubs:
            items.update(dict.fromkeys(listing(child(hub.result.values, *path))))
        if items:
            put_at(many.values, path, list(items))
    comment = "Pull Secrets are the hubs': create them in the release's namespace, too."
    if "imagePullSecrets" in many.values:
        many.comments["imagePullSecrets",] = [comment]
    elif child(many.values, "singleuser", "image", "pullSecrets"):
        many.comments["singleuser",] = [comment]


@dataclass(slots=True)
class _SharedImage:
    """An image of the release with the nodes that it is for, and the hubs that have it there."""

    override: dict[str, Any]
    hubs: list[str] = field(default_factory=list)


def _unite_images(many: ManyHubs, defaults: Values) -> None:
    """Each image with the nodes that it is for, as one entry of the profile list."""
    usual = list(defaults["prePuller"]["tolerations"])
    groups = [
        (hub.name, group)
        for hub in many.hubs
        for group in puller_groups(hub.values["singleuser"], hub.values["prePuller"])
    ]
    # What every puller tolerates is said once, unless some hub's doesn't.
    is_common = all(toleration in group.tolerations for _, group in groups for toleration in usual)
    always = usual if is_common else []
    shared: dict[str, _SharedImage] = {}
    for name, group in groups:
        for image in group.images:
            override = _override_of(image, group, always)
            key = to_json({**override, "image": normalise_reference(image)})
            known = shared.setdefault(key, _SharedImage(override))
            if name not in known.hubs:
                known.hubs.append(name)
    if always != usual:
        put_at(many.values, ("prePuller", "tolerations"), always)
    if not shared:
        return
    profiles = [
        {"display_name": some(image.hubs), "kubespawner_override": image.override}
        for image in sorted(shared.values(), key=lambda image: -len(image.hubs))
    ]
    put_at(many.values, ("singleuser", "profileList"), profiles)
    many.comments["singleuser", "profileList"] = [
        "Each image with its nodes, the one of most hubs first."
    ]


def _override_of(image: str, group: PullerGroup, always: Sequence[object]) -> dict[str, Any]:
    """What a profile says of an image and its nodes. always: tolerations that all pullers have."""
    override: dict[str, Any] = {"image": image}
    if group.node_selector:
        override["node_selector"] = dict(group.node_selector)
    tolerations = [dict(toleration) for toleration in group.tolerations if toleration not in always]
    if tolerations:
        override["tolerations"] = tolerations
    if group.required_terms:
        override["node_affinity_required"] = [dict(term) for term in group.required_terms]
    return override


@dataclass(slots=True)
class _SharedSet:
    """A placeholder set of the release, for the sets of hubs that have these nodes and this
    size.
    """

    # A set's keys, but name and replicas.
    nodes_and_size: Values
    replicas: int = 0
    # Names of the hubs, once for each of their sets.
    hubs: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> str:
        """The nodes that it is for, in one text."""
        return to_json([self.nodes_and_size.get(key) for key in NODE_KEYS])

    @property
    def labels_in_words(self) -> str:
        """The labels of its nodes, for its name; "": it names none."""
        selector = self.nodes_and_size.get("nodeSelector") or {}
        return "-".join(str(value) for _, value in sorted(selector.items()))


def _shared_sets(hubs: Iterable[ImportedHub], usual: Values) -> list[_SharedSet]:
    """The hubs' placeholder sets, those of the same nodes and size in one.

    usual: Roost's defaults of a set; a hub's own stand in its sets.
    """
    shared: dict[str, _SharedSet] = {}
    for hub in hubs:
        for entry in hub.values["placeholders"]:
            nodes_and_size = {key: value for key, value in entry.items() if key != "name"}
            for key, value in hub.values["placeholder"]["defaults"].items():
                if value != usual.get(key):
                    nodes_and_size.setdefault(key, value)
            replicas = int(nodes_and_size.pop("replicas", 0) or 0)
            shared_set = shared.setdefault(to_json(nodes_and_size), _SharedSet(nodes_and_size))
            shared_set.replicas += replicas
            shared_set.hubs.append(hub.name)
    return list(shared.values())


def _by_pool(shared: Iterable[_SharedSet]) -> dict[str, list[_SharedSet]]:
    """The sets of each pool, by its nodes: first those that keep room already, and of these that of
    most hubs.
    """

    def rank(shared_set: _SharedSet) -> tuple[bool, int]:
        return not shared_set.replicas, -len(shared_set.hubs)

    pools: dict[str, list[_SharedSet]] = {}
    for shared_set in sorted(shared, key=rank):
        pools.setdefault(shared_set.nodes, []).append(shared_set)
    return pools


def _hubs_it_stands_for(shared_set: _SharedSet, pool: Sequence[_SharedSet]) -> list[str]:
    """Its own hubs; for a pool's first set, also those of the pool's sets with 0 replicas.

    pool: the sets of its nodes.
    """
    if shared_set is not pool[0]:
        return shared_set.hubs
    without_room = [hub for other in pool[1:] if not other.replicas for hub in other.hubs]
    others = [hub for hub in dict.fromkeys(without_room) if hub not in shared_set.hubs]
    return shared_set.hubs + others


def _kept_sets(
    shared: Sequence[_SharedSet], pools: Mapping[str, Sequence[_SharedSet]]
) -> Sequence[_SharedSet]:
    """The sets that the release needs: those that keep room already, and in a pool without any, the
    first if it learns. It counts all users of its nodes, so others there would count them again.
    """
    kept = [
        shared_set
        for shared_set in shared
        if shared_set.replicas
        or (shared_set is pools[shared_set.nodes][0] and shared_set.nodes_and_size.get("learn"))
    ]
    # Without any set, no event could be booked.
    return kept or shared[:1]


def _unite_placeholders(many: ManyHubs, defaults: Values) -> None:
    """One set for each pool and size, as large as the hubs' together."""
    shared = _shared_sets(many.hubs, defaults["placeholder"]["defaults"])
    pools = _by_pool(shared)
    entries: list[dict[str, Any]] = []
    comments: list[str] = []
    taken: set[str] = set()
    for shared_set in _kept_sets(shared, pools):
        name = free_name(shared_set.labels_in_words, taken, "default", _MAX_NAME)
        taken.add(name)
        entries.append({"name": name, "replicas": shared_set.replicas, **shared_set.nodes_and_size})
        hubs = _hubs_it_stands_for(shared_set, pools[shared_set.nodes])
        comments.append(f"{name}: of {some(hubs)}")
    put_at(many.values, ("placeholders",), entries)
    many.comments["placeholders",] = [
        (
            "As many as the hubs had together, by pool and size. Hubs that share them need fewer:"
            " lower replicas."
        ),
        *comments,
    ]


def _placeholders_by_pool(values: Values) -> Counter[str]:
    """How many placeholders there are for each kind of node."""
    placeholders: Counter[str] = Counter()
    for entry in values["placeholders"]:
        placeholder_set = complete_placeholder_set(entry, values["placeholder"]["defaults"])
        pool = to_json([placeholder_set.get(key) for key in NODE_KEYS])
        placeholders[pool] += int(entry.get("replicas") or 0)
    return placeholders


def _images_by_nodes(values: Values) -> dict[str, set[str]]:
    """The images that pullers bring to each kind of node, those of all nodes among them."""
    groups = puller_groups(values["singleuser"], values["prePuller"])
    images: dict[str, set[str]] = {}
    for group in groups:
        labels = group.node_selector.items()
        # A puller that asks for fewer labels runs on these nodes, too.
        pullers_there = [other for other in groups if other.node_selector.items() <= labels]
        images[to_json(group.node_selector)] = {
            image for puller in pullers_there for image in puller.images
        }
    return images


def _leaves(values: Values, path: HubPath = ()) -> Iterator[HubPath]:
    """The paths of which the release gets one value, that of most hubs."""
    for key, value in values.items():
        here = (*path, key)
        if here in _UNITED:
            continue
        # scheduler.profiles counts as one value: a mix of hubs' parts is no profile.
        is_profiles = here == ("scheduler", "profiles")
        if isinstance(value, dict) and value and not is_profiles:
            yield from _leaves(value, here)
        else:
            yield here


def _short(value: object) -> str:
    text = "null" if value is None else to_json(value).strip('"')
    return text if len(text) <= 40 else f"{text[:39]}…"
