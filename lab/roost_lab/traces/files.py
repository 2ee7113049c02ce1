"""Read the lines of a trace's file in bounded memory, whatever is in it: plain text, gzip, cut off, or binary."""

from __future__ import annotations

import sys
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from roost_lab.traces.counts import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN: Final = Path("-")
# Launches are far shorter; a longer line must not fill memory.
MOST_LINE_BYTES: Final = 1 << 20
# Traces have no blank lines and no endless lines, but a few bytes of gzip can hold gigabytes of either.
MOST_BLANK_LINES: Final = 1_000_000
MOST_DROPPED_BYTES: Final = 1 << 28
_READ_BYTES: Final = 1 << 18
_GZIP: Final = b"\x1f\x8b"
_OTHERS: Final = {
    b"BZh": ("bzip2", "bzip2 -dc"),
    b"\xfd7zXZ\x00": ("xz", "xz -dc"),
    b"\x28\xb5\x2f\xfd": ("zstandard", "zstd -dc"),
    b"PK\x03\x04": ("a zip archive", "unzip -p"),
}
_BOMS: Final = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

# Stands for a line of more than MOST_LINE_BYTES.
TOO_LONG: Final = b"\0too long"


class Breakage(Exception):  # noqa: N818 - it ends a file early, and is counted, not told as an error
    """A file can't be read further; the text says why. The lines before are good."""


def name_of(path: Path) -> str:
    """A file's name in errors and counts."""
    return "standard input" if path == STDIN else str(path)


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open for reading. Raises TraceError."""
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from error
    with file:
        yield file


def read_lines(path: Path, file: BinaryIO) -> Iterator[list[bytes]]:
    """The file's lines in batches, without their ends; a line of more than MOST_LINE_BYTES comes as TOO_LONG.

    Raises TraceError for a file of another kind, or one that is blank for too long; Breakage where it can be read no
    further.
    """
    rest, dropping = b"", False
    number = blank = dropped_bytes = 0
    broken: Breakage | None = None
    blocks = _plain_blocks(path, file)
    while True:
        try:
            block = next(blocks, b"")
        except Breakage as error:
            block, broken = b"", error
        if not block:
            break
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        if dropping and lines:
            lines[0], dropping = TOO_LONG, False
        if any(len(line) > MOST_LINE_BYTES for line in lines):
            lines = [line if len(line) <= MOST_LINE_BYTES else TOO_LONG for line in lines]
        if dropping or len(rest) > MOST_LINE_BYTES:
            dropped_bytes = dropped_bytes + len(block) if not lines else 0
            if dropped_bytes > MOST_DROPPED_BYTES:
                raise TraceError(name_of(path), number + 1, f"a line of more than {dropped_bytes >> 20} MiB")
            rest, dropping = b"", True
        if not lines:
            continue
        blank = blank + len(lines) if not any(map(bytes.strip, lines)) else 0
        if blank > MOST_BLANK_LINES:
            raise TraceError(name_of(path), number + len(lines), f"more than {MOST_BLANK_LINES} blank lines in a row")
        number += len(lines)
        yield lines
    if dropping:
        yield [TOO_LONG]
    elif rest and broken is None:
        yield [rest]
    if broken is not None:
        raise broken


def _plain_blocks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """The file's bytes, unpacked."""
    first = _read(path, file)
    for magic, (kind, command) in _OTHERS.items():
        if first.startswith(magic):
            raise TraceError(name_of(path), 0, kind, fix=f"Unpack it: {command} FILE | roost simulate --trace -")
    for magic, kind in _BOMS.items():
        if first.startswith(magic):
            raise TraceError(name_of(path), 0, kind, fix="Turn it into UTF-8: iconv -f UTF-16 -t UTF-8 FILE.")
    if first.startswith(_GZIP):
        yield from _unpacked_blocks(path, file, first)
        return
    block = first.removeprefix(b"\xef\xbb\xbf")
    while block:
        yield block
        block = _read(path, file)


def _unpacked_blocks(path: Path, file: BinaryIO, block: bytes) -> Iterator[bytes]:
    """What gzip's members hold, one after the other, never more than _READ_BYTES at a time."""
    machine = zlib.decompressobj(wbits=31)
    at_start = False
    while block:
        try:
            plain = machine.decompress(block, _READ_BYTES)
        except zlib.error as error:
            if at_start:
                raise Breakage("bytes behind the compressed data that aren't gzip's") from error
            raise Breakage("the compressed data is damaged from here on") from error
        at_start = False
        if plain:
            yield plain
        block = machine.unconsumed_tail
        if machine.eof:
            block = machine.unused_data
            while not block.strip(b"\0"):
                # Padding, as tar and dd leave it; or the end.
                block = _read(path, file)
                if not block:
                    return
            block = block.lstrip(b"\0")
            machine, at_start = zlib.decompressobj(wbits=31), True
        elif not block:
            block = _read(path, file)
    raise Breakage("the compressed data breaks off here")


def _read(path: Path, file: BinaryIO) -> bytes:
    try:
        return file.read(_READ_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> TraceError:
    return TraceError(
        name_of(path), 0, (error.strerror or str(error)).lower(), "readable files, or - for standard input"
    )
