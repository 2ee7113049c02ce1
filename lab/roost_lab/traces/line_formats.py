"""Read a line of a trace by the module of its format, which `schema` and `version` name.

To add a format, write a module with SCHEMA, VERSIONS and `read_entry`, such as
binderhub_launches.py, and add it to FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from roost_lab.traces import binderhub_launches, recorder
from roost_lab.traces.counts import InputCounts, show
from roost_lab.traces.files import UNREADABLE
from roost_lab.traces.launch_line import LaunchDetails, LaunchLine, UnusableLine, read_stamp

# Schema -> its known versions, and the function that reads an entry of them. The function raises
# UnusableLine.
FORMATS: Final[Mapping[object, tuple[range, Callable[[Mapping[str, Any]], LaunchDetails]]]] = {
    binderhub_launches.SCHEMA: (binderhub_launches.VERSIONS, binderhub_launches.read_entry),
    recorder.SCHEMA: (recorder.VERSIONS, recorder.read_entry),
}


class LineReader:
    """Reads the lines of one file, and counts formats and notes."""

    def __init__(self, file: str, counts: InputCounts) -> None:
        self._file = file
        self._counts = counts
        # The time of the last line, as text and as read: many lines have the same.
        self._stamp_text: object = None
        self._stamp = 0.0
        self._resolution = 0

    def read(self, text: bytes, number: int) -> LaunchLine:
        """The launch of a line. number: of the line, from 1. Raises UnusableLine."""
        entry = _parse(text)
        schema = entry.get("schema")
        if schema is None:
            raise UnusableLine("`schema` is missing")
        if type(schema) is not str or schema not in FORMATS:
            raise UnusableLine(f"schema {show(schema)} is unknown")
        launch = self._launch(schema, entry)
        stamp_text = entry.get("timestamp")
        # A value that is no text always goes to `read_stamp`, which refuses it.
        if stamp_text != self._stamp_text or type(stamp_text) is not str:
            self._stamp, self._resolution = read_stamp(stamp_text)
            self._stamp_text = stamp_text
        for note in launch.notes:
            self._counts.note(note, self._file, number)
        return LaunchLine(self._stamp, number, self._resolution, launch)

    def _launch(self, schema: str, entry: Mapping[str, Any]) -> LaunchDetails:
        versions, read_entry = FORMATS[schema]
        version = entry.get("version")
        if type(version) is not int or version not in versions:
            raise UnusableLine(f"version {show(version)} of {schema} is unknown")
        key = f"{schema} {version}"
        formats = self._counts.formats
        formats[key] = formats.get(key, 0) + 1
        return read_entry(entry)


def _parse(text: bytes) -> dict[str, Any]:
    """The JSON object of a line. Raises UnusableLine."""
    try:
        entry = orjson.loads(text)
    except orjson.JSONDecodeError:
        reason = "not valid JSON" if text.strip() else "empty"
        # A line that couldn't be read stands for its reason: see files.py.
        raise UnusableLine(UNREADABLE.get(text, reason)) from None
    if type(entry) is not dict:
        raise UnusableLine("not a JSON object")
    return entry
