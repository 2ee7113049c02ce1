"""Read the lines of a trace's file in bounded memory, whatever is in it: plain or packed text, cut
off, or binary.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from gzip import BadGzipFile
from io import BufferedReader
from pathlib import Path
from typing import Final

from roost_lab.packed_files import (
    UNPACKS_WITHOUT_END,
    UTF16_MARKS,
    UnpacksWithoutEndError,
    find_other_packing,
    unpacked,
)
from roost_lab.traces.counts import TraceError

# Launches are far shorter; a longer line must not fill memory.
MOST_LINE_BYTES: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"
# What stands for a line that can't be read -> why. With the last four the file ends early.
_TOO_LONG: Final = b"\0too long"
_CUT: Final = b"\0cut"
_DAMAGED: Final = b"\0damaged"
_BEHIND: Final = b"\0behind"
_ENDLESS: Final = b"\0endless"
UNREADABLE: Final = {
    _TOO_LONG: f"longer than {MOST_LINE_BYTES} bytes",
    _CUT: "the compressed data breaks off here",
    _DAMAGED: "the compressed data is damaged from here on",
    _BEHIND: "bytes behind the compressed data that aren't gzip's",
    _ENDLESS: f"{UNPACKS_WITHOUT_END}; unpack it yourself",
}


def read_lines(path: Path) -> Iterator[bytes]:
    """The file's lines without their ends; those that can't be read come as keys of UNREADABLE.

    Raises TraceError for a file that can't be opened, or is of another kind.
    """
    try:
        with path.open("rb") as file:
            other = find_other_packing(file)
            if other:
                fix = f"Unpack it: {other.unpack} FILE | roost simulate --trace -"
                raise TraceError(str(path), 0, other.kind, fix=fix)
            first = file.peek(3)
            if first.startswith(UTF16_MARKS):
                fix = "Turn it into UTF-8: iconv -f UTF-16 -t UTF-8 FILE."
                raise TraceError(str(path), 0, "UTF-16", fix=fix)
            if first.startswith(_BOM):
                file.read(len(_BOM))
            yield from _lines(unpacked(file))
    except EOFError:
        yield _CUT
    except zlib.error:
        yield _DAMAGED
    except UnpacksWithoutEndError:
        yield _ENDLESS
    except BadGzipFile as error:
        yield _BEHIND if str(error).startswith("Not a gzipped file") else _DAMAGED
    except OSError as error:
        found = (error.strerror or str(error)).lower()
        raise TraceError(str(path), 0, found, "readable files, or - for standard input") from error


def _lines(file: BufferedReader) -> Iterator[bytes]:
    while line := file.readline(MOST_LINE_BYTES + 1):
        if len(line) <= MOST_LINE_BYTES or line.endswith(b"\n"):
            yield line.removesuffix(b"\n")
        else:
            yield _TOO_LONG
            _skip_line(file)


def _skip_line(file: BufferedReader) -> None:
    """Read on, a piece at a time, until the line or the file ends."""
    while rest := file.readline(MOST_LINE_BYTES):
        if rest.endswith(b"\n"):
            return
