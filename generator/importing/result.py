"""The result of an import: the values, piece by piece, and the report for the operator."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from generator.faults import Fault, KeyPath, one_line
from generator.importing.source import HubPath, HubSection, kind_of, show_key
from generator.importing.summary import IMAGES, PLACEHOLDERS, HubSummary, TrialFindings, summary_of
from generator.importing.yaml_printer import print_yaml
from generator.values.lookups import child, mapping
from generator.values.sources import Places

_SHORT_LINES: Final = 12
# Without the promise IMAGES, the hub's puller stays on; without PLACEHOLDERS, its placeholders.
_PULLER_STAYS: Final = (
    "it isn't promised that Roost's brings what users run. Two pullers pull twice: Roost's is off"
    " by prePuller.enabled: false and imageGate.pullerPods: zeroToJupyterHub"
)
_PLACEHOLDERS_STAY: Final = (
    "it isn't promised that Roost's keep room for these users. placeholders: [] leaves Roost's away"
    " until they do"
)
# Their pods have what `corePods` says, where they say nothing themselves.
_CORE_PROGRAMS: Final = ("scheduler", "webhook", "controllers", "recorder", "seating")


@dataclass(frozen=True, slots=True)
class ImportNote:
    """A placement-related key that could not be mapped.

    `key`: its full name in the file; `line`: 0 when unknown.
    """

    file: str
    key: str
    line: int
    value_kind: str
    reason: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return one_line(f"{where}: not mapped: {self.key} ({self.value_kind}): {self.reason}")


@dataclass(slots=True)
class ImportResult:
    """What `import_layers` made: `values` hold only what differs from Roost's defaults."""

    filename: str
    values: dict[str, object] = field(default_factory=dict)
    unmapped: list[ImportNote] = field(default_factory=list)
    # Lines `key: value` to set in the file that was read, once Roost is installed.
    switch_off: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    comments: dict[HubPath, list[str]] = field(default_factory=dict)
    # What `roost validate` says of the values.
    warnings: list[Fault] = field(default_factory=list)
    # Keys that stand twice in the file: whoever wrote the first may not know that it doesn't count.
    repeated: list[Fault] = field(default_factory=list)
    # Lines `key: reason` of what Roost would do, and can't here: it stays on in the hub.
    keep: list[str] = field(default_factory=list)
    summary: HubSummary = field(
        default_factory=lambda: HubSummary([], [], [], [], promises=frozenset())
    )
    # The hub's own values; None: there is no hub.
    hub: HubSection | None = None
    # Whether images are built for its users.
    has_builds: bool = False
    # Whether BinderHub's chart is around it: then users run no other images than built ones.
    is_binder: bool = False
    # Whether built images are pushed to a registry, from which other nodes may pull them.
    has_registry: bool = True
    # What must be true before users are placed; empty: they are.
    places_users_once: list[str] = field(default_factory=list)
    # The key that decides which pods builds are, if nobody knows to what; "": all is known.
    builds_unknown: str = ""
    # Which line of `switch_off` is about which part: see `replace_part`.
    replaced: dict[str, str] = field(default_factory=dict)
    # Knows file and line of each key.
    places: Places = field(default_factory=lambda: Places([]))
    # How users fare, line by line, if that was tried.
    tried: list[str] = field(default_factory=list)
    # The lines of `tried` that say that something isn't known.
    not_known: list[str] = field(default_factory=list)
    # With the price of a node-hour, shares of node-hours are also said in money. None: they aren't.
    node_hour_price: float | None = None

    def judge(self, values: Mapping[str, object], trial: TrialFindings | None = None) -> None:
        """Sum up what whole values do for the hub, and keep on there what Roost won't do.

        trial: how made pods fared with the values; None: none was tried.
        """
        if trial is not None and trial.names_unknown:
            # What was read names the key that sets it; the trial only knows that something does.
            trial = trial._replace(unplaced=self.places_users_once)
        unplaced = self.places_users_once if trial is None else trial.unplaced
        self.tried = [] if trial is None else trial.lines
        self.not_known = [] if trial is None else trial.not_known
        self.summary = summary_of(
            values,
            self.places_users_once,
            trial,
            has_builds=self.has_builds,
            builds_unknown=self.builds_unknown,
            node_hour_price=self.node_hour_price,
        )
        self._keep_on_what_is_not_promised(unplaced, was_tried=trial is not None)

    def _keep_on_what_is_not_promised(self, unplaced: Sequence[str], *, was_tried: bool) -> None:
        """Have the hub keep each part of which the summary doesn't promise that Roost does it.

        unplaced: what must be true before users are placed. was_tried: on made pods.
        """
        if was_tried and IMAGES not in self.summary.promises:
            self.keep_on("puller", _PULLER_STAYS)
        if was_tried and PLACEHOLDERS not in self.summary.promises:
            self.keep_on("placeholders", _PLACEHOLDERS_STAY)
        if self.builds_unknown:
            self.keep_on("builds", "which pods builds are isn't known here")
        if unplaced:
            reason = f"Roost doesn't place all users until {' and '.join(unplaced)}"
            self.keep_on("scheduler", reason)

    def replace_part(self, part: str, line: str) -> None:
        """Have the hub switch off its "scheduler", "puller", "placeholders" or "builds"."""
        self.switch_off.append(line)
        self.replaced[part] = line

    def line_of(self, source: KeyPath) -> str:
        """Where a key stands, for people: ", line 7"; "" where that isn't known."""
        _, line = self.places.of(source)
        return f", line {line}" if line else ""

    def keep_on(self, part: str, reason: str) -> None:
        """Have the hub keep a part, in place of the line that switches it off, if there is one."""
        line = self.replaced.pop(part, "")
        if line:
            self.switch_off.remove(line)
            key, _, _ = line.partition(": ")
            self.keep.append(f"{key}: {reason}")

    @property
    def verdict(self) -> list[str]:
        """Lines that say that users aren't placed, if so, and how they fare."""
        return [*self.summary.verdict, *self.tried]

    def to_yaml(self) -> str:
        """The values as a commented document that `roost validate` passes."""
        head = [
            f"Made by `roost import` from {self.filename}: only what differs from Roost's defaults."
        ]
        if self.switch_off:
            head += [
                "Set there, once Roost is installed:",
                *(f"  {line}" for line in self.switch_off),
            ]
        body = print_yaml(self.values, self.comments) if self.values else "{}\n"
        return "".join(f"# {one_line(line)}\n" for line in head) + body

    def report(self, proposals: Sequence[str] = (), *, details: bool = True) -> str:
        """The report for stderr: what Roost will do, what to switch off, what would help, and then
        all else.

        proposals: lines that name them. Without details: the first 12 lines, then those of the
        first week.
        """
        # What isn't known is never among the lines that are left out.
        lines = [*self.summary.will, *self.not_known]
        lines += [str(fault) for fault in self.repeated]
        lines += [f"switch off there: {line}" for line in self.switch_off]
        lines += [f"keep it on there: {line}" for line in self.keep]
        lines += [line for line in self.tried if line not in self.not_known]
        lines += proposals
        lines += [str(note) for note in self.unmapped]
        lines += [str(warning) for warning in self.warnings]
        lines += [f"note: {note}" for note in self.notes]
        lines += self.summary.wont
        if not details and len(lines) > _SHORT_LINES:
            # The last of the short lines says what was left out.
            left_out = lines[_SHORT_LINES - 1 :]
            fault_lines = {str(fault) for fault in (*self.repeated, *self.unmapped, *self.warnings)}
            faults = sum(line in fault_lines for line in left_out)
            named = f", {faults} of them keys that aren't mapped and warnings" if faults else ""
            lines = lines[: _SHORT_LINES - 1]
            lines.append(f"{len(left_out)} more lines{named}: roost import --details")
        lines += self.summary.first_week
        return "".join(f"{one_line(line)}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Piece:
    """One value for Roost, and the key of the file that it comes from."""

    path: HubPath
    value: object
    comments: tuple[str, ...]
    source: HubPath
    # For a list that leaves some of the file's entries out: where each one stands there.
    positions: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Draft(ImportResult):
    """The result while values are read: collects pieces and notes."""

    defaults: Mapping[str, object]
    release: str
    pieces: list[Piece] = field(default_factory=list)

    def put(
        self,
        dotted: str,
        value: object,
        source: HubPath,
        *comments: str,
        positions: Sequence[int] = (),
    ) -> None:
        """Set a value of Roost's, unless it is the default.

        `source`: the full path of the key that it comes from.
        """
        path = tuple(dotted.split("."))
        if self._default(path) != value:
            self.pieces.append(
                Piece(path, copy.deepcopy(value), comments, source, tuple(positions))
            )

    def _default(self, path: HubPath) -> object:
        own = child(self.defaults, *path)
        if own is None and path[0] in _CORE_PROGRAMS:
            return child(self.defaults, "corePods", *path[1:])
        return own

    def put_each(
        self, dotted: str, values: Mapping[str, object], source: HubPath, *comments: str
    ) -> None:
        """`put` for a mapping that is merged into a default which is not empty: each key by
        itself. The comments stand above the first of them.
        """
        chosen = {(*dotted.split("."), key): value for key, value in values.items()}
        changed = [
            (path, value) for path, value in chosen.items() if child(self.defaults, *path) != value
        ]
        for place, (path, value) in enumerate(changed):
            above = comments if place == 0 else ()
            self.pieces.append(Piece(path, copy.deepcopy(value), above, source))

    def reject(self, section: HubSection, keys: HubPath, reason: str) -> None:
        """Note that the key `keys` of `section` has no place in Roost's values."""
        self.refuse((*section.path, *keys), child(section.data, *keys), reason)

    def refuse(self, source: KeyPath, value: object, reason: str) -> None:
        """`reject` for any place of the file, entries of lists too. `source`: the full path."""
        file, line = self.places.of(source)
        key = show_key(tuple(f"[{step}]" if isinstance(step, int) else step for step in source))
        self.unmapped.append(ImportNote(file, key, line, kind_of(value), reason))


def merge_pieces(
    pieces: Sequence[Piece], defaults: Mapping[str, object]
) -> tuple[dict[str, object], dict[HubPath, list[str]]]:
    """The values that all pieces make, in the order of the defaults, later pieces over earlier; and
    their comments.
    """
    values: dict[str, object] = {}
    comments: dict[HubPath, list[str]] = {}
    for piece in pieces:
        put_at(values, piece.path, copy.deepcopy(piece.value))
        if piece.comments:
            comments[piece.path] = list(piece.comments)
    return _in_order(values, defaults), comments


def put_at(values: dict[str, Any], path: HubPath, value: object) -> None:
    """Write a value at a path, with maps above it."""
    for key in path[:-1]:
        below = values.get(key)
        if not isinstance(below, dict):
            below = {}
            values[key] = below
        values = below
    values[path[-1]] = value


def free_name(text: str, taken: Collection[str], fallback: str, longest: int) -> str:
    """A DNS label made of `text` that is none of `taken`; fallback: where nothing of the text is
    left.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())[:longest].strip("-") or fallback
    name = plain
    number = 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    return name


def _in_order(values: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, object]:
    keys = [
        *(key for key in defaults if key in values),
        *(key for key in values if key not in defaults),
    ]
    ordered: dict[str, object] = {}
    for key in keys:
        value = values[key]
        if isinstance(value, dict):
            value = _in_order(value, mapping(defaults.get(key)))
        ordered[key] = value
    return ordered
