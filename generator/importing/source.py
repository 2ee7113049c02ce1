"""Find the hub in a foreign values file, and keep account of which of its keys were understood.

A hub's values lie at the top of the file or under a parent chart's key (`jupyterhub`,
`basehub.jupyterhub`). What the importer reads is ticked off; `Section.unread` tells what is left,
so that nothing is dropped in silence.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from generator.hub_keys import HUB_KEYS
from generator.values.lookups import child, mapping
from generator.values.profile_overrides import by_key

# What only the hub's Python knows.
UNKNOWN: Final = "set-in-python"
# Keys, the outermost first: from the top of the file, of a section of it (a hub's values), or of
# Roost's values. Entries of lists need a KeyPath.
HubPath = tuple[str, ...]
Kind = Literal["boolean", "integer", "number", "string", "mapping", "list", "any"]

# What stands below the key `hub` of a hub, should the file hold no other key.
_KEYS_OF_HUB: Final = re.compile(
    "baseUrl|config|db|extraConfig|extraEnv|extraFiles|extraVolumes|image|nodeSelector|services"
)
# All keys at the top of zero-to-jupyterhub's values.
CHART_KEYS: Final = frozenset(
    [
        "cull",
        "custom",
        "debug",
        "enabled",
        "fullnameOverride",
        "global",
        "httpRoute",
        "hub",
        "imagePullSecret",
        "imagePullSecrets",
        "ingress",
        "nameOverride",
        "prePuller",
        "proxy",
        "rbac",
        "scheduling",
        "singleuser",
    ]
)
BINDER_KEYS: Final = frozenset({"imageBuilderType", "imageCleaner", "dind", "pink"})
_BINDER_CONFIG: Final = frozenset({"BinderHub", "KubernetesBuildExecutor"})
SERVICE_KEY: Final = "binderhub-service"
# Names under which parent charts nest a hub. Others are found too (aliases), these come first.
_USUAL_NESTINGS: Final[tuple[HubPath, ...]] = (
    (),
    ("jupyterhub",),
    ("binderhub", "jupyterhub"),
    ("basehub", "jupyterhub"),
    ("daskhub", "jupyterhub"),
    ("daskhub", "basehub", "jupyterhub"),
    ("binderhub",),
    ("basehub",),
    ("daskhub",),
)
_MAX_DEPTH: Final = 4
# Printed as it is; `[1]` is a list's entry.
_PLAIN_KEY: Final = re.compile(r"[\w-]+|\[\d+\]")


def kind_of(value: object) -> str:
    """The name that faults and notes give to a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "mapping" if isinstance(value, Mapping) else "list"


def show_key(path: HubPath) -> str:
    """`path` with dots; a key that holds dots or odd characters is quoted, so it never breaks a
    line.
    """
    parts = [part if _PLAIN_KEY.fullmatch(part) else json.dumps(part) for part in path]
    return ".".join(parts).replace(".[", "[") or "(top)"


def fits(value: object, kind: Kind) -> bool:
    """Whether `value` is of `kind` as Helm would take it: 2.0 is an integer."""
    if kind == "integer":
        return kind_of(value) == "number" and float(str(value)).is_integer()
    return kind == "any" or kind_of(value) == kind


@dataclass(slots=True)
class HubSection:
    """The values of one chart inside the file, and which of its keys were read."""

    data: Mapping[str, object]
    path: HubPath
    read: set[HubPath] = field(default_factory=set)
    misfits: dict[HubPath, tuple[object, Kind]] = field(default_factory=dict)

    def get(self, dotted: str, kind: Kind) -> object:
        """The value at `dotted`, ticked off.

        None when absent, null (`is_deleted` tells which) or not of `kind` (then noted in
        `misfits`).
        """
        keys = tuple(dotted.split("."))
        value = child(self.data, *keys)
        self.read.add(keys)
        if value is None:
            self._note_section_above(keys)
            return None
        if not fits(value, kind):
            self.misfits[keys] = (value, kind)
            return None
        return int(float(str(value))) if kind == "integer" else value

    def is_misfit(self, dotted: str) -> bool:
        """Whether a value was read at `dotted`, and noted as one of another kind."""
        return tuple(dotted.split(".")) in self.misfits

    def tick_off(self, dotted: str) -> None:
        """Count what stands at `dotted`, and below it, as read: nothing more follows from it."""
        self.get(dotted, "any")

    def _note_section_above(self, keys: HubPath) -> None:
        """Note that something else stands where a section should: nothing below it can be read."""
        for depth in range(1, len(keys)):
            above = child(self.data, *keys[:depth])
            if above is not None and not isinstance(above, Mapping):
                self.read.add(keys[:depth])
                self.misfits[keys[:depth]] = (above, "mapping")

    def is_deleted(self, dotted: str) -> bool:
        """Whether a null stands at `dotted` itself: Helm then takes the chart's default away."""
        above, _, key = dotted.rpartition(".")
        holder = child(self.data, *above.split("."))
        return isinstance(holder, Mapping) and key in holder and holder[key] is None

    def mapping(self, dotted: str) -> Mapping[str, object]:
        """Like `get`; {} for none. Without nulls: Helm deletes those keys."""
        value = self.get(dotted, "mapping")
        if not isinstance(value, Mapping):
            return {}
        return {key: item for key, item in value.items() if item is not None}

    def items(self, dotted: str) -> list[object] | None:
        """Like `get` for a list, or a mapping of named entries in the order of their names; None
        tells an absent list from an empty or deleted one.
        """
        named = child(self.data, *dotted.split("."))
        if isinstance(named, Mapping):
            items = [item for item in by_key(named) if item is not None]
            if all(isinstance(item, Mapping) for item in items):
                self.tick_off(dotted)
                return items
        value = self.get(dotted, "list")
        if self.is_deleted(dotted):
            return []
        return value if isinstance(value, list) else None

    def text(self, dotted: str) -> str | None:
        """Like `get` for a string; the empty string counts as absent, as it does to the charts."""
        value = self.get(dotted, "string")
        return value if isinstance(value, str) and value else None

    def switch(self, dotted: str, default: bool) -> bool:
        """Like `get` for a boolean; a default that was deleted is false, as to Go's `if`."""
        value = self.get(dotted, "boolean")
        if self.is_deleted(dotted):
            return False
        return value if isinstance(value, bool) else default

    def unread(self, below: HubPath) -> Iterator[tuple[HubPath, object]]:
        """Leaves at and below `below` that were never read; lists are leaves, null and empty values
        are none.
        """
        value = child(self.data, *below)
        if below in self.read or value is None or value in ({}, [], ""):
            return
        if isinstance(value, Mapping):
            for key in value:
                yield from self.unread((*below, key))
        else:
            yield below, value

    def show(self, keys: HubPath | str) -> str:
        """The full name of a key of this section in the file."""
        below = keys.split(".") if isinstance(keys, str) else keys
        return show_key((*self.path, *below))


@dataclass(frozen=True, slots=True)
class Charts:
    """What the file configures."""

    hub: HubSection
    # False when the values are binderhub-service's own, which has no hub.
    has_hub: bool
    # BinderHub's chart around the hub, and 2i2c's binderhub-service chart beside it.
    binder: HubSection | None
    service: HubSection | None
    # The parent chart's own values, when the hub is nested.
    parent: HubSection


def find_hubs(values: Mapping[str, object]) -> list[HubPath]:
    """Where `values` hold a hub; below a BinderHub's own key, its hub alone."""
    paths = [
        path for path in _USUAL_NESTINGS if _is_named(values, path) or _looks_like_hub(values, path)
    ]
    paths += [
        path for path in _walk(values, ()) if path not in paths and _looks_like_hub(values, path)
    ]
    binder_path = _binder_path(values, paths)
    if binder_path is not None and (*binder_path, "jupyterhub") in paths:
        # `binderhub:` may hold a hub's key by mistake only; the hub of BinderHub's chart is always
        # below `jupyterhub`.
        return [path for path in paths if path != binder_path]
    return paths


def misshapen_sections(values: Mapping[str, object]) -> list[tuple[HubPath, object]]:
    """What has the name of a hub, or of a section of one, in one of the usual places, and is no
    mapping.
    """
    keys = sorted(HUB_KEYS | {"jupyterhub"})
    sections = {
        (*place, key): child(values, *place, key) for place in _USUAL_NESTINGS for key in keys
    }
    return [
        (path, value)
        for path, value in sections.items()
        if value is not None and not isinstance(value, Mapping)
    ]


def find_charts(values: Mapping[str, object], hub: HubPath | None = None) -> Charts | None:
    """Find the hub (or take the one at `hub`) and what stands around it; None when nothing looks
    like one.
    """
    paths = find_hubs(values) if hub is None else [hub]
    binder_path = _binder_path(values, paths)
    service_path = _service_path(values, paths[0][:-1] if paths else ())
    if not paths and binder_path is None and service_path is None:
        return None
    if paths:
        hub_path = paths[0]
        in_binder = (*hub_path, "jupyterhub")
        if hub_path == binder_path and isinstance(child(values, *in_binder), Mapping):
            # The same mistake as in `find_hubs`, by whoever names the hub.
            hub_path = in_binder
    else:
        # A BinderHub's values without a word on its hub: the hub has the chart's defaults.
        hub_path = (*(binder_path or service_path or ())[:1], "jupyterhub")

    def section(path: HubPath) -> HubSection:
        return HubSection(mapping(child(values, *path)), path)

    return Charts(
        hub=section(hub_path),
        has_hub=bool(paths) or binder_path is not None,
        binder=None if binder_path is None else section(binder_path),
        service=None if service_path is None else section(service_path),
        # A hub at the top of the file has no parent.
        parent=section(hub_path[:-1]) if hub_path else HubSection({}, ()),
    )


def _is_named(values: Mapping[str, object], path: HubPath) -> bool:
    """Whether a path ends with the key `jupyterhub`, and a mapping or nothing stands there: that is
    a hub, whatever it holds.
    """
    named = mapping(child(values, *path[:-1])).get("jupyterhub", "")
    return path[-1:] == ("jupyterhub",) and (named is None or isinstance(named, Mapping))


def _looks_like_hub(values: Mapping[str, object], path: HubPath) -> bool:
    """Whether a mapping holds a hub's values: two known keys, or one that no other chart has."""
    values = mapping(child(values, *path))
    named = HUB_KEYS & set(values)
    known = {key for key in named if isinstance(values[key], Mapping | None)}
    if len(known) > 1 or known & {"scheduling", "singleuser", "prePuller"}:
        return True
    return any(_KEYS_OF_HUB.fullmatch(str(key)) for key in mapping(values.get("hub")))


def _is_binder(values: Mapping[str, object], path: HubPath) -> bool:
    """Whether the values of BinderHub's chart stand at a path."""
    values = mapping(child(values, *path))
    if BINDER_KEYS & set(values) or (path[-1:] == ("binderhub",) and values):
        return True
    # binderhub-service has the same classes below `config`.
    is_configured = bool(_BINDER_CONFIG & set(mapping(values.get("config"))))
    return is_configured and "dockerApi" not in values


def _binder_path(values: Mapping[str, object], hub_paths: list[HubPath]) -> HubPath | None:
    places = [
        *(path[:-1] for path in hub_paths if path[-1:] == ("jupyterhub",)),
        (),
        ("binderhub",),
    ]
    return next((path for path in places if _is_binder(values, path)), None)


def _service_path(values: Mapping[str, object], parent: HubPath) -> HubPath | None:
    """Where the values of binderhub-service stand, 2i2c's chart for a hub that builds images.

    (): the file is its own. None: nowhere.
    """
    for path in ((*parent, SERVICE_KEY), (SERVICE_KEY,)):
        is_there = isinstance(child(values, *path), Mapping)
        if is_there and child(values, *path, "enabled") is not False:
            return path
    return () if "dockerApi" in values or "buildPodsRegistryCredentials" in values else None


def _walk(value: object, path: HubPath) -> Iterator[HubPath]:
    if len(path) > _MAX_DEPTH or not isinstance(value, Mapping):
        return
    yield path
    for key in value:
        # Below these, anything may stand; a hub never does.
        if key not in HUB_KEYS and key not in {"custom", "properties", "global"}:
            yield from _walk(value[key], (*path, key))
