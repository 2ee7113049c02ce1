"""Read one line of a trace: its `schema` and `version` say which format it has, and that format's
module reads it.

A new format is a module with SCHEMA, VERSIONS and `read_entry`, as binderhub_launches.py and
recorder.py, and its line in FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from roost_lab.traces import binderhub_launches, recorder
from roost_lab.traces.counts import InputCounts, show
from roost_lab.traces.files import UNREADABLE
from roost_lab.traces.launch_line import LaunchDetails, LaunchLine, UnusableLine, read_stamp

# Schema -> the versions that are known, and what reads an entry of one; it raises UnusableLine.
FORMATS: Final[Mapping[object, tuple[range, Callable[[Mapping[str, Any]], LaunchDetails]]]] = {
    binderhub_launches.SCHEMA: (binderhub_launches.VERSIONS, binderhub_launches.read_entry),
    recorder.SCHEMA: (recorder.VERSIONS, recorder.read_entry),
}


class LineReader:
    """Reads the lines of one file, and counts formats and notes."""

    def __init__(self, file: str, counts: InputCounts) -> None:
        self._file = file
        self._counts = counts
        # The text of the last line's time: many lines have the same.
        self._text: object = None
        self._stamp = 0.0
        self._resolution = 0

    def read(self, text: bytes, number: int) -> LaunchLine:
        """A launch. Raises UnusableLine."""
        entry = _parse(text)
        schema = entry.get("schema")
        if schema is None:
            raise UnusableLine("`schema` is missing")
        if type(schema) is not str or schema not in FORMATS:
            raise UnusableLine(f"schema {show(schema)} is unknown")
        launch = self._launch(schema, entry)
        moment = entry.get("timestamp")
        # What is no text is read each time: then `read_stamp` says that it is no time.
        if moment != self._text or type(moment) is not str:
            self._stamp, self._resolution = read_stamp(moment)
            self._text = moment
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
    try:
        entry = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise UnusableLine(
            UNREADABLE.get(text) or ("not valid JSON" if text.strip() else "empty")
        ) from None
    if type(entry) is not dict:
        raise UnusableLine("not a JSON object")
    return entry
