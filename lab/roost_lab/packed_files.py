"""How a file that people give may be packed: plain, or by gzip. All else is named, with the command
that unpacks it.

`roost simulate --trace`, `roost records import` and `roost rehearse --past` read files by it.
"""

from __future__ import annotations

import zlib
from gzip import BadGzipFile, GzipFile
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What a GzipFile raises where its data breaks off or is damaged.
DAMAGES: Final = (EOFError, BadGzipFile, zlib.error)
_GZIP: Final = b"\x1f\x8b"
# Of this repository's texts, gzip packs mybinder.org's launches best (tests/data/launches).
# Unpacked, they are 36 times as long. Far more is there to fill memory. A little may be anything.
_MOST_TIMES: Final = 100
_LITTLE_BYTES: Final = 8 * 2**20
UNPACKS_WITHOUT_END: Final = f"compressed data of which more than {_MOST_TIMES} times as much comes"
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


def unpacked(file: BufferedReader) -> BufferedReader:
    """The file's content; reading it may raise DAMAGES if `is_packed`."""
    return BufferedReader(_Unpacking(file)) if is_packed(file) else file


class UnpacksWithoutEndError(BadGzipFile):
    """More comes out of the compressed data than of any text."""


class _Unpacking(RawIOBase):
    """What comes out of a file that is packed by gzip. Reading it may raise DAMAGES."""

    def __init__(self, packed: BufferedReader) -> None:
        self._packed = _Counted(packed)
        self._content = GzipFile(fileobj=cast("BinaryIO", self._packed))
        self._length = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        length: int = self._content.readinto1(buffer)
        self._length += length
        if self._length > _LITTLE_BYTES + _MOST_TIMES * self._packed.length:
            raise UnpacksWithoutEndError(UNPACKS_WITHOUT_END)
        return length


class _Counted:
    """As much of a file as GzipFile needs, and how much of it was read."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self.length = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.length += len(data)
        return data
