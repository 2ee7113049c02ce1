"""How a file that people give may be packed: plain, or by gzip. All else is named, with the command
that unpacks it.

`roost simulate --trace`, `roost records import` and `roost rehearse --past` read files by it.
"""

from __future__ import annotations

import zlib
from gzip import BadGzipFile, GzipFile
from io import BufferedReader
from typing import Final, NamedTuple

# What a GzipFile raises where its data breaks off or is damaged.
DAMAGES: Final = (EOFError, BadGzipFile, zlib.error)
_GZIP: Final = b"\x1f\x8b"
# What a text in UTF-16 begins with: Windows PowerShell writes `>` so.
UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class Packing(NamedTuple):
    """A way of packing that isn't read."""

    kind: str
    # The command that writes the content to its standard output, before the file's name.
    unpack: str


# What a file begins with.
_OTHERS: Final = {
    b"BZh": Packing("bzip2", "bzip2 -dc"),
    b"\xfd7zXZ\x00": Packing("xz", "xz -dc"),
    b"\x28\xb5\x2f\xfd": Packing("zstandard", "zstd -dc"),
    b"PK\x03\x04": Packing("a zip archive", "unzip -p"),
}


def find_other_packing(file: BufferedReader) -> Packing | None:
    """How the file is packed, if that isn't read here; None: it is plain, or packed by gzip."""
    head = file.peek(8)
    return next((packing for magic, packing in _OTHERS.items() if head.startswith(magic)), None)


def is_packed(file: BufferedReader) -> bool:
    """Whether the file is packed by gzip."""
    return file.peek(2).startswith(_GZIP)


def unpacked(file: BufferedReader) -> GzipFile | BufferedReader:
    """The file's content; reading it may raise DAMAGES if `is_packed`."""
    return GzipFile(fileobj=file) if is_packed(file) else file
