"""From file names and `--set` to merged values."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from generator.faults import DEFAULTS_NAME, Fault, UsageError, ValuesError
from generator.hub_keys import NEVER_OURS
from generator.package_data import chart_folder
from generator.values.loader import load
from generator.values.merge import NO_SET_OPTIONS, Merged, SetOptions, coalesce, merge_values
from generator.values.sources import MAX_FILE_BYTES, LoadedFile


def read_values(files: Sequence[str], settings: SetOptions = NO_SET_OPTIONS) -> Merged:
    """Read and merge the chart's defaults, `files` in their order ("-" is stdin) and the command
    line's settings.

    Raises ValuesError with the faults of all files, UsageError for a file that can't be read.
    """
    merged, faults, unread = read_what_loads(files, settings)
    if unread:
        raise unread[0]
    if faults:
        raise ValuesError(faults)
    return merged


def read_what_loads(
    files: Sequence[str], settings: SetOptions = NO_SET_OPTIONS
) -> tuple[Merged, list[Fault], list[UsageError]]:
    """Read and merge as `read_values`, but leave out the files that can't be used.

    Returns the merged values, the faults of files that hold no values, and an error for each file
    that can't be read.
    """
    loaded, faults, unread = _load_what_loads(files)
    return merge_values(read_defaults(), loaded, settings), faults, unread


def load_files(files: Sequence[str]) -> list[LoadedFile]:
    """Read files of values without merging them, for a caller that merges them more than once.

    Raises ValuesError with the faults of all files, UsageError for a file that can't be read.
    """
    loaded, faults, unread = _load_what_loads(files)
    if unread:
        raise unread[0]
    if faults:
        raise ValuesError(faults)
    return loaded


def _load_what_loads(
    files: Sequence[str],
) -> tuple[list[LoadedFile], list[Fault], list[UsageError]]:
    loaded: list[LoadedFile] = []
    faults: list[Fault] = []
    unread: list[UsageError] = []
    for name in files:
        try:
            file = load(read_file(name), name)
            fault = _fault_of_hub_values(file, name)
            if fault is None:
                loaded.append(file)
            else:
                faults.append(fault)
        except ValuesError as error:
            faults.extend(error.faults)
        except UsageError as error:
            unread.append(error)
    return loaded, faults, unread


def _fault_of_hub_values(file: LoadedFile, name: str) -> Fault | None:
    """The fault of a file with a hub's values instead of Roost's. None: it isn't a hub's."""
    key = next((key for key in file.values if key in NEVER_OURS), None)
    if key is None:
        return None
    line = file.source.find((key,)).line
    found = "a key of zero-to-jupyterhub's or BinderHub's values"
    shown = "stdin" if name == "-" else name
    fix = f"Convert a hub's values first: `roost import {shown} > values.yaml`."
    return Fault(name, line, key, found, "Roost's own values", fix)


@cache
def read_defaults() -> LoadedFile:
    """The chart's own values.yaml, without its nulls."""
    file = load((chart_folder() / "values.yaml").read_bytes(), DEFAULTS_NAME)
    return LoadedFile(coalesce({}, file.values), file.source)


def parse_values(data: bytes, name: str) -> Merged:
    """The values of a file, given its bytes, merged with the chart's defaults.

    For a file that was read already: a pipe gives its bytes only once. Raises ValuesError.
    """
    return merge_values(read_defaults(), [load(data, name)])


def read_file(name: str, most_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a file, or stdin for "-", up to a byte more than `most_bytes`. Raises UsageError."""
    # If a byte more than accepted is there, the file is too large. Reading on might never end.
    try:
        if name == "-":
            return sys.stdin.buffer.read(most_bytes + 1)
        with Path(name).open("rb") as file:
            return file.read(most_bytes + 1)
    except OSError as error:
        raise UsageError(
            f"{name}: can't be read ({error.strerror}). Give the path of a file."
        ) from None
