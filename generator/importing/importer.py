"""Turn zero-to-jupyterhub's or BinderHub's values into Roost's, and report what could not be
converted.

Guarantees: the result is valid for Roost, whatever the file holds; it keeps no more placeholders
than the file did until it has learned from the hub's own days, and then at most as many as
`most_of` in `profile_pools.py` says; and every placement-related key is either mapped, or named
with its line and the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from generator.faults import Fault, ValuesError, raise_errors, show_path
from generator.hub_keys import HUB_KEYS, NEVER_OURS
from generator.importing import source
from generator.importing.argo_flux import values_of
from generator.importing.builds import map_builds
from generator.importing.hub import map_hub
from generator.importing.result import Draft, ImportResult, Piece, merge_pieces
from generator.importing.trial_pods import user_pods
from generator.importing.wrappers import (
    FROM_CLUSTER,
    MADE_BY_CHART,
    WITHOUT_RELEASE,
    Unwrapped,
    read_hub_file,
)
from generator.pipeline import find_faults
from generator.render.managed_images import puller_groups
from generator.values.files import read_defaults
from generator.values.loader import load
from generator.values.lookups import child
from generator.values.merge import Merged, coalesce, merge_values
from generator.values.release_name import Release
from generator.values.sources import LoadedFile, Places, ValueSource

_ALL = "import what Helm made of all: helm get values RELEASE --all -o yaml"
_LAYERS = (
    "Read as the hub's whole configuration: keys that it doesn't hold have their chart's defaults."
    f" If it is one of several files, {_ALL}"
)
# Keys of Roost's own values that no other chart has.
_OWN_KEYS = frozenset(
    {
        "corePods",
        "imageGate",
        "placeholder",
        "placeholderMover",
        "placeholders",
        "podClasses",
        "popularImages",
        "priorityClasses",
        "replaceSchedulers",
        "sharedPools",
    }
)
_ACCEPTED = "values of zero-to-jupyterhub or BinderHub"
_BITNAMI = "Bitnami's chart of JupyterHub"
# A key that the accepted charts don't have -> the chart that has it.
_OTHER_CHARTS: Mapping[source.HubPath, str] = {
    ("imagePuller",): _BITNAMI,
    ("singleuser", "image", "repository"): _BITNAMI,
    ("hub", "image", "repository"): _BITNAMI,
    ("gateway", "backend"): "dask-gateway",
}


def import_layers(
    layers: Sequence[tuple[str, str | bytes]],
    release: str = "",
    hub: str | None = None,
    *,
    usual_release: str = "hub",
    node_hour_price: float | None = None,
) -> ImportResult:
    """Roost's values for the hub that the given files (name and content; later ones win, as with
    Helm) configure.

    release: the hub's Helm release; its user scheduler is named after it. "": what an object of
    Argo CD or Flux names, else `usual_release`. hub: the key of the hub's values, like
    "basehub.jupyterhub"; None: the only one there is. node_hour_price: by which shares of
    node-hours are said in money, too; None: they aren't. Raises ValuesError when one is no values
    file or is encrypted, or when they hold no hub of zero-to-jupyterhub's or BinderHub's, or
    several.
    """
    unwrapped = [_load(name, text) for name, text in layers]
    loaded = [file for layer in unwrapped for file in layer.files]
    releases_in_files = [layer.release for layer in unwrapped if layer.release]
    is_release_known = bool(release or releases_in_files)
    release_name = release or next(iter(releases_in_files), usual_release)
    values = values_of(loaded)
    filename = ", ".join(name for name, _ in layers)
    places = Places([file.source for file in loaded])
    charts = _charts(values, filename, places, _chosen_hub(values, loaded, filename, hub))
    defaults = read_defaults().values
    draft = Draft(
        filename,
        node_hour_price=node_hour_price,
        defaults=defaults,
        places=places,
        release=release_name,
    )
    draft.notes += [
        f"{name}: {key} isn't read here, and may say otherwise: {_whole(layer.kind)}"
        for (name, _), layer in zip(layers, unwrapped, strict=True)
        for key in layer.unread
    ]
    draft.repeated = [warning for layer in unwrapped for warning in layer.repeated]
    if len(loaded) == 1 and unwrapped[0].kind != MADE_BY_CHART:
        draft.notes.append(_LAYERS)
    if "values" in charts.hub.path and not is_release_known:
        draft.notes.append(
            f"No release is named here, and {release_name} is taken: --hub-release NAME says which."
        )
    draft.is_binder = charts.binder is not None
    draft.has_builds = draft.is_binder or charts.service is not None
    if charts.has_hub:
        map_hub(draft, charts)
        draft.notes.append(_spawn_page_note(charts.hub))
    map_builds(draft, charts)
    draft.values, draft.comments = merge_pieces(_valid_pieces(draft, defaults), defaults)
    draft.unmapped.sort(key=lambda note: (note.file, note.line, note.key))
    draft.hub = charts.hub if charts.has_hub else None
    _judge(draft)
    return draft


def faults_of(values: Mapping[str, object]) -> list[Fault]:
    """What `roost validate` says of values, over Roost's defaults."""
    merged = Merged(
        coalesce(values, read_defaults().values), Places([ValueSource("imported values", values)])
    )
    return find_faults(merged, Release())


def _judge(result: ImportResult) -> None:
    """Lint what was made, as `roost validate` will, and say in plain words what Roost does with
    it.
    """
    printed = load(result.to_yaml().encode(), "imported values")
    merged = merge_values(read_defaults(), [printed])
    result.warnings = [
        fault
        for fault in raise_errors(find_faults(merged, Release()))
        if fault.file == "imported values"
    ]
    if not puller_groups(merged.values.get("singleuser"), merged.values.get("prePuller")):
        reason = "no image of users is named here, so Roost's puller has none to bring"
        result.keep_on("puller", reason)
    elif any(not user.pod["spec"]["containers"][0]["image"] for user in user_pods(result)):
        reason = "not every user's image is named here, and Roost's puller brings what is named"
        result.keep_on("puller", reason)
    result.judge(merged.values)


def _whole(kind: str) -> str:
    """How to import all values of a hub. kind: what installs it."""
    return f"import {FROM_CLUSTER}" if kind in WITHOUT_RELEASE else _ALL


def _load(name: str, text: str | bytes) -> Unwrapped:
    unwrapped = read_hub_file(name, text)
    if any(isinstance(file.values.get("sops"), Mapping) for file in unwrapped.files):
        found = "a file encrypted by SOPS"
        fix = "Decrypt it first: sops -d FILE"
        raise ValuesError([Fault(name, 1, "sops", found, "readable values", fix)])
    return unwrapped


def _chosen_hub(
    values: Mapping[str, object], files: Sequence[LoadedFile], filename: str, hub: str | None
) -> source.HubPath | None:
    """Where the hub's values are; None: wherever `find_charts` finds them."""
    hubs = source.find_hubs(values)
    if hub is not None:
        # As faults call it.
        is_top = hub == source.show_key(())
        chosen = () if is_top else tuple(part for part in hub.split(".") if part)
        if source.kind_of(child(values, *chosen)) != "mapping":
            known_hubs = " or ".join(source.show_key(path) for path in hubs) or "no hub"
            found = f"no values below {hub}"
            fault = Fault(filename, 0, "", found, known_hubs, "Name that with --hub.")
            raise ValuesError([fault])
        return chosen
    if len(hubs) < 2:
        return None
    named = []
    for path in hubs:
        # A hub at the top of the files is in those that hold one of a hub's keys there.
        names = [
            file.source.name
            for file in files
            if path in source.find_hubs(file.values) or (path and child(file.values, *path))
        ]
        named.append(f"{source.show_key(path)} ({', '.join(names)})")
    fix = (
        "Where one holds another chart's defaults (basehub's own file below daskhub, say), import"
        " what Helm made of all: helm get values RELEASE --all. Or give a file that holds one"
        f" hub alone. roost import also chooses one: --hub {source.show_key(hubs[0])}."
    )
    found = f"{len(hubs)} hubs: {' and '.join(named)}"
    raise ValuesError([Fault(filename, 0, "", found, "one hub", fix)])


def _spawn_page_note(hub: source.HubSection) -> str:
    if child(hub.data, "hub", "config", "KubeSpawner", "events_enabled") is False:
        key = hub.show("hub.config.KubeSpawner.events_enabled")
        return (
            f"{key} is false: the spawn page shows no Events, so nobody reads Roost's start notices"
            " there."
        )
    return (
        "docs/start-notices.md has lines for the hub's values: the scheduler's warnings in plain"
        " words."
    )


def _refuse_own(values: Mapping[str, object], filename: str) -> None:
    """Refuse Roost's own values: what they say of a hub would be taken for the hub's.

    A chart around a hub may have a key of the same name.
    """
    own_keys = sorted(_OWN_KEYS & set(values))
    has_hub_below = any(source.find_hubs(values))
    if own_keys and not has_hub_below and not set(values) & NEVER_OURS:
        fix = f"They need no import: roost validate -f {filename}."
        found = f"Roost's own values ({', '.join(own_keys)})"
        raise ValuesError([Fault(filename, 1, own_keys[0], found, _ACCEPTED, fix)])


def _refuse_other_hub(charts: source.Charts | None, filename: str, places: Places) -> None:
    """Refuse what is called like a hub and has none of its keys: an empty hub would be imported."""
    if charts is None or not charts.has_hub or charts.binder is not None:
        return
    keys = set(charts.hub.data)
    if keys and not keys & source.CHART_KEYS:
        at = charts.hub.path
        first_keys = sorted(str(key) for key in keys)[:4]
        found = f"no key of a hub ({', '.join(first_keys)})"
        fix = "Import what Helm made of all: helm get values RELEASE --all -n NAMESPACE -o yaml."
        where = places.of(at) if at else (filename, 1)
        raise ValuesError([Fault(*where, source.show_key(at), found, _ACCEPTED, fix)])


def _charts(
    values: Mapping[str, object], filename: str, places: Places, hub: source.HubPath | None
) -> source.Charts:
    """The charts that the values are of. Raises ValuesError: they are of none that can be
    imported.
    """
    _refuse_own(values, filename)
    charts = source.find_charts(values, hub)
    _refuse_other_hub(charts, filename, places)
    _refuse_other_chart(values, charts, places)
    if charts is not None:
        if charts.service is not None and not charts.has_hub:
            raise ValuesError([_service_alone(values, charts.service, places)])
        return charts
    _refuse_misshapen(values, places)
    if values:
        raise ValuesError([_no_hub(values, filename, places)])
    # An empty file configures a hub too: the chart's defaults.
    empty = source.HubSection({}, ())
    return source.Charts(hub=empty, has_hub=True, binder=None, service=None, parent=empty)


def _refuse_other_chart(
    values: Mapping[str, object], charts: source.Charts | None, places: Places
) -> None:
    """Refuse values with a key that another chart of hubs has."""
    hub_path = charts.hub.path if charts is not None else ()
    for keys, whose in _OTHER_CHARTS.items():
        path = (*hub_path, *keys)
        if child(values, *path) is None:
            continue
        fix = (
            "Give the values of the hub's own chart; its images have name and tag: helm get"
            " values RELEASE --all."
        )
        found = f"a key of {whose}"
        raise ValuesError([Fault(*places.of(path), source.show_key(path), found, _ACCEPTED, fix)])


def _service_alone(
    values: Mapping[str, object], service: source.HubSection, places: Places
) -> Fault:
    """What is said of binderhub-service's values without a hub's."""
    if service.path:
        key = service.path[0]
    else:
        # The file is the service's own, recognised by one of these keys.
        key = "dockerApi" if "dockerApi" in values else "buildPodsRegistryCredentials"
    fix = "It has no users: give its hub's values, too, as one of several files."
    return Fault(*places.of((key,)), key, "binderhub-service alone", _ACCEPTED, fix)


def _refuse_misshapen(values: Mapping[str, object], places: Places) -> None:
    """Refuse sections of a hub that aren't mappings."""
    fix = "Write the section's keys below it, or remove it."
    misshapen = []
    for path, value in source.misshapen_sections(values):
        found = f"a {source.kind_of(value)}"
        misshapen.append(Fault(*places.of(path), source.show_key(path), found, "a mapping", fix))
    if misshapen:
        raise ValuesError(misshapen)


def _no_hub(values: Mapping[str, object], filename: str, places: Places) -> Fault:
    """What is said of values in which no hub is found."""
    # Keys that a hub has, but other charts too.
    some = sorted(HUB_KEYS & set(values))
    if some:
        found = f"{' and '.join(some)} alone, as other charts may have"
        fix = (
            "If a hub's, write `singleuser: {}` beside it, or import what Helm made of all: helm"
            " get values --all."
        )
        return Fault(filename, 1, "", found, _ACCEPTED, fix)
    kind = values.get("kind")
    if isinstance(kind, str) and "apiVersion" in values:
        fix = (
            "Of objects, those of Argo CD (Application, ApplicationSet), Flux (HelmRelease),"
            " Crossplane (Release) and k3s (HelmChart) are read."
        )
        return Fault(filename, 1, "kind", f"an object {kind}", _ACCEPTED, fix)
    if child(values, "image", "repository") is not None:
        place = places.of(("image", "repository"))
        found = "a key of another chart: these charts name images by name and tag"
        return Fault(*place, "image.repository", found, _ACCEPTED)
    found = f"no key of a hub ({', '.join(sorted(HUB_KEYS | source.BINDER_KEYS))})"
    return Fault(filename, 1, "", found, _ACCEPTED)


def _valid_pieces(draft: Draft, defaults: Mapping[str, object]) -> list[Piece]:
    """The pieces that Roost accepts together; those that it rejects are noted.

    A size or a text that zero-to-jupyterhub lets pass may be a fault here: then the rest is still
    worth having.
    """
    pieces = list(draft.pieces)
    faults = _faults(pieces, defaults)
    while faults:
        refused = pieces.pop(_guilty(faults[0], pieces, defaults))
        sound = _sound_entries(draft, refused, defaults)
        if sound is None:
            _note_refused(draft, refused, faults[0])
            is_replaced = any(piece.path == refused.path for piece in pieces)
            if refused.path == ("placeholders",) and refused.value and not is_replaced:
                # Without a piece, Roost's default would add placeholders that the hub doesn't have.
                why = "The hub's were rejected."
                pieces.append(Piece(refused.path, [], (why,), refused.source))
        else:
            pieces.append(sound)
        faults = _faults(pieces, defaults)
    return pieces


def _note_refused(draft: Draft, refused: Piece, fault: Fault) -> None:
    draft.refuse(refused.source, refused.value, _reason(fault))
    if refused.path[:3] == ("podClasses", "user", "match"):
        draft.places_users_once.append(f"{source.show_key(refused.path)} follows the hub's")


def _sound_entries(draft: Draft, piece: Piece, defaults: Mapping[str, object]) -> Piece | None:
    """A list without its entries that Roost rejects, each of which is noted; None: it isn't a list,
    or Roost rejects all of its entries, or none of them alone.
    """
    if not isinstance(piece.value, list) or piece.path == ("placeholders",):
        return None
    faults_of_entries = [
        _faults([replace(piece, value=[entry])], defaults) for entry in piece.value
    ]
    if all(faults_of_entries) or not any(faults_of_entries):
        return None
    sound: list[object] = []
    sound_positions: list[int] = []
    positions = piece.positions or range(len(piece.value))
    for entry, position, faults in zip(piece.value, positions, faults_of_entries, strict=True):
        if faults:
            draft.refuse((*piece.source, position), entry, _reason(faults[0]))
        else:
            sound.append(entry)
            sound_positions.append(position)
    return replace(piece, value=sound, positions=tuple(sound_positions))


def _reason(fault: Fault) -> str:
    reason = f"found {fault.found}, expected {fault.expected}" if fault.expected else fault.found
    return f"Roost rejects it as {fault.key}: {reason}"


def _guilty(fault: Fault, pieces: Sequence[Piece], defaults: Mapping[str, object]) -> int:
    """The position of the piece to drop for `fault`: the last piece that it names, else the piece
    without which the fewest faults remain.
    """
    for position in reversed(range(len(pieces))):
        path = show_path(pieces[position].path)
        if fault.key == path or fault.key.startswith((f"{path}.", f"{path}[")):
            return position

    def faults_without(position: int) -> int:
        others = [*pieces[:position], *pieces[position + 1 :]]
        return len(_faults(others, defaults))

    return min(range(len(pieces)), key=faults_without)


def _faults(pieces: Sequence[Piece], defaults: Mapping[str, object]) -> list[Fault]:
    values, _ = merge_pieces(pieces, defaults)
    return [fault for fault in faults_of(values) if fault.severity == "error"]
