"""Map BinderHub's and binderhub-service's values: where builds run, and what their placement needs.

Source: BinderHub's chart and traits (KubernetesBuildExecutor and LaunchQuota, with the older names
under BinderHub) of 2026; binderhub-service's templates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from generator.importing.chart_resources import kubernetes_resources
from generator.importing.hub_code import class_settings
from generator.importing.python_settings import ANY
from generator.importing.quantities import MEMORY, memory_quantity, quantity, spawner_bytes
from generator.importing.result import Draft
from generator.importing.source import UNKNOWN, Charts, HubPath, HubSection, Kind, fits
from generator.importing.traits import SetTrait
from generator.values.lookups import child
from roost_core.objects.requests import requested
from roost_core.placement.labels import NAMESPACE_NAME_LABEL

_EXECUTOR: Final = ("config", "KubernetesBuildExecutor")
_NO_LABELS: Final = {"component": None}
# Traits that moved: their name today -> their name under BinderHub before.
_OLD_NAMES: Final[Mapping[str, str]] = {
    "sticky_builds": "sticky_builds",
    "namespace": "build_namespace",
    "docker_host": "build_docker_host",
    "memory_request": "build_memory_request",
    "node_selector": "build_node_selector",
}
# Traits that decide about builds and are mapped where they are written out.
_READ: Final = frozenset({*_OLD_NAMES, *_OLD_NAMES.values(), "component_label", "_component_label"})
_BUILDERS: Final = "stays with the builders; Roost chooses among the nodes that have a ready one"
_BUILDER_SIZE: Final = (
    "stays with the builders; were it to come from Roost, a class of podClasses that matches"
    " component: image-builder could give it as its resources"
)
_STAYS: Final = (
    "stays with BinderHub: build pods bring it along, and Roost chooses among the nodes that have a"
    " ready builder pod"
)
# Values of imageBuilderType with which builder pods run.
_BUILDER_PODS: Final = ("dind", "pink")
_BUILD_CLASSES: Final = ("BinderHub", "KubernetesBuildExecutor")
# Quotas of launches: of all users, and of the users of one repository.
_TOTAL_QUOTAS: Final = (
    ("LaunchQuota", "total_quota"),
    ("KubernetesLaunchQuota", "total_quota"),
    ("BinderHub", "pod_quota"),
)
_REPO_QUOTAS: Final = (("BinderHub", "per_repo_quota"), ("BinderHub", "per_repo_quota_higher"))
# Traits that decide which pods builds are, and where: if one isn't known, no build is promised a
# home.
_DECIDES: Final = frozenset(
    {
        "sticky_builds",
        "namespace",
        "build_namespace",
        "build_class",
        "component_label",
        "_component_label",
        "docker_host",
        "build_docker_host",
        ANY,
    }
)
# The executor of BinderHub's chart, as the configuration names it.
_KNOWN_BUILD_CLASS: Final = "binderhub.build.KubernetesBuildExecutor"
# What Python sets, by (class, trait). Its `at` is the key of the code.
_Set = Mapping[tuple[str, str], SetTrait]


def map_builds(draft: Draft, charts: Charts) -> None:
    """Map what either chart says about builds; nothing when the file has neither."""
    if charts.service is not None:
        _map_service(draft, charts.service)
    if charts.binder is not None:
        _map_builder(draft, charts.binder)
        _note_image_cleaner(draft, charts.binder)
    for section in (charts.binder, charts.service):
        if section is not None:
            set_traits = _read_python(section)
            _note_python(draft, section, set_traits)
            _note_build_class(draft, section, set_traits)
            _note_no_registry(draft, section, set_traits)
            _note_quotas(draft, section)
            _map_executor(draft, section, set_traits)
    _note_node_placeholder(draft, charts.parent)
    _note_dask(draft, charts.parent)


def _map_service(draft: Draft, service: HubSection) -> None:
    """binderhub-service labels its builders otherwise than BinderHub's chart, so the default
    label must go.
    """
    labels = {
        "app.kubernetes.io/name": "binderhub-service",
        "app.kubernetes.io/component": "docker-api",
    }
    why = "binderhub-service's builder pods; null deletes the label of BinderHub's own chart."
    draft.put("podClasses.build.home.builders.labels", {**_NO_LABELS, **labels}, service.path, why)
    for key in ("nodeSelector", "tolerations", "affinity"):
        if child(service.data, "dockerApi", key):
            draft.reject(service, ("dockerApi", key), _BUILDERS)


def _map_builder(draft: Draft, binder: HubSection) -> None:
    for kind in _BUILDER_PODS:
        if binder.mapping(f"{kind}.resources"):
            draft.reject(binder, (kind, "resources"), _BUILDER_SIZE)
    builder = _builder_type(binder)
    if builder is None:
        sticky = _trait(binder, _read_python(binder), "sticky_builds", "boolean")
        if sticky.value is True:
            # BinderHub's sticky builds fail without builder pods: another file says dind or pink.
            return
    if builder in (None, "host", "local"):
        why = (
            "imageBuilderType host (the default): builds use the Docker of their node, so any node"
            " can be a home."
        )
        source = (*binder.path, "imageBuilderType")
        draft.put("podClasses.build.home.builders.labels", _NO_LABELS, source, why)
    elif builder not in _BUILDER_PODS:
        reason = (
            "expected host, local, dind or pink; podClasses.build.home.builders must find its pods"
        )
        draft.reject(binder, ("imageBuilderType",), reason)


def _builder_type(binder: HubSection) -> str | None:
    """The chart's `imageBuilderType`; None: the file doesn't say."""
    builder = binder.text("imageBuilderType")
    if builder is not None:
        return builder
    # Older charts have a switch for each.
    switched_on = [
        kind for kind in _BUILDER_PODS if binder.switch(f"{kind}.enabled", default=False)
    ]
    return "dind" if switched_on else None


def _read_python(section: HubSection, classes: Collection[str] = _BUILD_CLASSES) -> _Set:
    """What the chart's own Python sets of these classes, by default of builds."""
    config = child(section.data, "extraConfig")
    codes: list[tuple[HubPath, object]] = [(("extraConfig",), config)]
    if isinstance(config, Mapping):
        codes = [(("extraConfig", str(name)), code) for name, code in sorted(config.items())]
    set_traits: dict[tuple[str, str], SetTrait] = {}
    for at, code in codes:
        if not isinstance(code, str) or not code.strip():
            continue
        for class_name, trait, value in class_settings(code, classes):
            set_traits[class_name, trait] = SetTrait(value, at)
    return set_traits


def _note_python(draft: Draft, section: HubSection, set_traits: _Set) -> None:
    """Name what the chart's own Python sets of builds, where its value isn't written out."""
    for (class_name, trait), (value, at) in set_traits.items():
        is_unknown = trait == ANY or value == UNKNOWN or trait not in _READ
        if trait not in _DECIDES or not is_unknown:
            continue
        cause = f"Python ({value})" if trait == ANY else f"c.{class_name}.{trait}, set in Python"
        _note_unknown_builds(draft, section, at, cause)
    if set_traits:
        where = section.show(("extraConfig",))
        draft.notes.append(f"{where} is Python: what it writes out about builds was read.")


def _note_build_class(draft: Draft, section: HubSection, set_traits: _Set) -> None:
    """Name another executor than Kubernetes' that the configuration sets, and Python doesn't."""
    at = ("config", "BinderHub", "build_class")
    build_class = child(section.data, *at)
    is_set = build_class not in (None, _KNOWN_BUILD_CLASS)
    if is_set and ("BinderHub", "build_class") not in set_traits:
        _note_unknown_builds(draft, section, at, f"builds are {build_class}'s")


def _note_no_registry(draft: Draft, section: HubSection, set_traits: _Set) -> None:
    """Name that built images are pushed nowhere, if they aren't: no other node can get them."""
    key: HubPath = ("config", "BinderHub", "use_registry")
    is_pushed = child(section.data, *key)
    if ("BinderHub", "use_registry") in set_traits:
        is_pushed, key = set_traits["BinderHub", "use_registry"]
    if is_pushed is False:
        draft.has_registry = False
        reason = (
            "images stay on the node that built them, and users can't start on another: keep the"
            " hub on one node, or give it a registry. popularImages can't bring these images"
        )
        draft.reject(section, key, reason)


def _note_quotas(draft: Draft, section: HubSection) -> None:
    """Say that BinderHub keeps its quotas of launches, and what room beyond them is worth."""
    of_all = _quotas(section, _TOTAL_QUOTAS, least=0)
    # There, 0 is no quota.
    of_repository = _quotas(section, _REPO_QUOTAS, least=1)
    if not of_all and not of_repository:
        return
    beyond = []
    if of_all:
        beyond.append("users never fill more placeholders than the quota of all")
    if of_repository:
        beyond.append("of a booked class, no more people start than its repository's quota")
    found = ", ".join([*of_all, *of_repository])
    draft.notes.append(
        f"{found}: quotas stay with BinderHub, which refuses launches beyond them. Placeholders"
        f" don't count there; {', and '.join(beyond)}."
    )


def _quotas(section: HubSection, traits: Collection[tuple[str, str]], *, least: int) -> list[str]:
    """The quotas that are set, each with its number, for people; Python has the last word.

    least: a smaller number is no quota.
    """
    set_traits = _read_python(section, {class_name for class_name, _ in traits})
    found = []
    for class_name, trait in traits:
        at: HubPath = ("config", class_name, trait)
        value = child(section.data, *at)
        if (class_name, trait) in set_traits:
            value, at = set_traits[class_name, trait]
        if value == UNKNOWN:
            found.append(f"{section.show(at)} sets {trait}")
        elif fits(value, "integer"):
            quota = int(float(str(value)))
            if quota >= least:
                found.append(f"{section.show(at)} is {quota}")
    return found


def _note_unknown_builds(draft: Draft, section: HubSection, at: HubPath, cause: str) -> None:
    """Name what decides which pods builds are. at: its key; cause: in words."""
    reason = (
        f"{cause}: Roost doesn't know which pods builds are then; set podClasses.build.match to"
        " their labels and namespace"
    )
    draft.reject(section, at, reason)
    draft.builds_unknown = draft.builds_unknown or section.show(at)


def _note_image_cleaner(draft: Draft, binder: HubSection) -> None:
    """Name a threshold of BinderHub's image cleaner that popular images may reach. The cleaner
    cordons its node while it deletes images.
    """
    at = ("imageCleaner", "imageGCThresholdHigh")
    high = child(binder.data, *at)
    fills = child(draft.defaults, "popularImages", "diskHeadroomPercent")
    is_share = binder.text("imageCleaner.imageGCThresholdType") in (None, "relative")
    if not binder.switch("imageCleaner.enabled", default=True) or not is_share:
        return
    if isinstance(high, int) and isinstance(fills, int) and high <= fills:
        reason = (
            f"from {high} % of a disk on, the cleaner cordons the node and deletes images, and"
            f" popular images may fill {fills} %: before you switch on popularImages, set its"
            f" diskHeadroomPercent below {high}"
        )
        draft.reject(binder, at, reason)


def _map_executor(draft: Draft, section: HubSection, set_traits: _Set) -> None:
    _map_home(draft, section, set_traits)
    namespace, key = _trait(section, set_traits, "namespace", "string")
    if namespace:
        selector = {"matchLabels": {NAMESPACE_NAME_LABEL: namespace}}
        at = (*section.path, *key)
        draft.put(
            "podClasses.build.match.namespaceSelector", selector, at, "Where build pods are made."
        )
    _map_build_requests(draft, section, set_traits)
    host, key = _trait(section, set_traits, "docker_host", "string")
    if host and not str(host).startswith(("/", "unix:///")):
        reason = (
            "no socket of the build's node, so no node has a warm cache; set podClasses.build.home:"
            " null"
        )
        draft.reject(section, key, reason)
    label = _component_label(set_traits)
    if label is not None and label.value:
        at = (*section.path, *label.at)
        why = "Build pods' own label."
        draft.put("podClasses.build.match.labels.component", label.value, at, why)
    for at in ((*_EXECUTOR, "node_selector"), ("config", "BinderHub", "build_node_selector")):
        if section.get(".".join(at), "mapping"):
            draft.reject(section, at, _STAYS)


def _map_home(draft: Draft, section: HubSection, set_traits: _Set) -> None:
    """Give the builds of a repository one home, if BinderHub sent them to one node, or says
    nothing.
    """
    sticky, sticky_key = _trait(section, set_traits, "sticky_builds", "boolean")
    if sticky is True:
        draft.replace_part("builds", f"{section.show(sticky_key)}: false")
    elif sticky is False:
        why = "sticky_builds was off: builds have no home."
        draft.put("podClasses.build.home", None, (*section.path, *sticky_key), why)
    elif not any(piece.path == ("podClasses", "build", "home") for piece in draft.pieces):
        draft.notes.append(
            f"{section.show(sticky_key)} is not in this file (BinderHub's default is off): Roost"
            " gives the builds of a repository one home. podClasses.build.home: null doesn't."
        )


def _map_build_requests(draft: Draft, section: HubSection, set_traits: _Set) -> None:
    """What build pods request; Roost's own requests, where BinderHub makes none."""
    at = (*_EXECUTOR, "resources")
    resources = section.mapping(".".join(at))
    requests = requested(kubernetes_resources(draft, section, at, resources))
    memory, key = _trait(section, set_traits, "memory_request", "any")
    size_bytes = spawner_bytes(memory)
    if size_bytes is not None:
        requests.setdefault("memory", memory_quantity(size_bytes))
    elif memory not in (None, 0, ""):
        draft.reject(section, key, f"expected {MEMORY}")
    # A request of 0 is none: null leaves out Roost's own.
    known = {
        name: size if quantity(size) else None
        for name, size in requests.items()
        if name in ("cpu", "memory", "ephemeral-storage")
    }
    if not requests:
        draft.notes.append(
            f"{section.show(at)} is not in this file: Roost gives builds requests"
            " (podClasses.build.resources), so that nodes fill up. Where all memory is requested,"
            " builds then wait for room; null leaves them without."
        )
    draft.put_each(
        "podClasses.build.resources", known, (*section.path, *at), "What build pods request there."
    )


def _component_label(set_traits: _Set) -> SetTrait | None:
    """The label by which builds are found; None: the chart's own."""
    for name in ("_component_label", "component_label"):
        label = set_traits.get(("KubernetesBuildExecutor", name))
        if label is not None and isinstance(label.value, str) and label.value != UNKNOWN:
            return label
    return None


def _trait(section: HubSection, set_traits: _Set, name: str, kind: Kind) -> SetTrait:
    """A trait by its name of today or before, and the key where it stands: that of today, where
    nobody sets it.

    set_traits: what Python sets, after the configuration.
    """
    today = (*_EXECUTOR, name)
    before = ("config", "BinderHub", _OLD_NAMES[name])
    for _, class_name, trait in (today, before):
        by_python = set_traits.get((class_name, trait))
        if by_python is None or by_python.value == UNKNOWN:
            continue
        if fits(by_python.value, kind):
            return by_python
    for key in (today, before):
        if child(section.data, *key) is not None:
            return SetTrait(section.get(".".join(key), kind), key)
    return SetTrait(None, today)


def _note_node_placeholder(draft: Draft, parent: HubSection) -> None:
    """2i2c's spare nodes: a Deployment whose pods ask for nothing and repel each other."""
    if child(parent.data, "nodePlaceholder", "enabled") is not True:
        return
    draft.reject(
        parent,
        ("nodePlaceholder",),
        "its pods keep up to N nodes alive by repelling each other, which Roost's placeholders"
        " don't: leave it there, or add an entry of `placeholders` whose resources are a whole"
        " node's",
    )


def _note_dask(draft: Draft, parent: HubSection) -> None:
    """Dask Gateway's pods may name the hub's user scheduler: once that is off, nobody binds
    them.
    """
    if child(parent.data, "dask-gateway", "enabled") is False:
        return
    for role in ("scheduler", "worker"):
        at = ("dask-gateway", "gateway", "backend", role, "extraPodConfig")
        for key in ("schedulerName", "nodeSelector", "tolerations", "affinity"):
            value = child(parent.data, *at, key)
            if not value:
                continue
            reason = "Dask's pods keep it; a class of their own in podClasses would place them"
            if key == "schedulerName":
                reason = (
                    f"change it before you switch the scheduler {value} off, or these pods stay"
                    " Pending"
                )
            draft.reject(parent, (*at, key), reason)
