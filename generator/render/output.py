"""Write manifests to a folder for `kubectl apply -k`, which is replaced as a whole or not at all."""

from __future__ import annotations

import ctypes
import fcntl
import glob
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from generator.faults import UsageError, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from generator.render.manifests import Manifest

KUSTOMIZATION: Final = "kustomization.yaml"
# First line of Roost's kustomization: a folder without it isn't Roost's, and is left alone.
MARK: Final = "# Written by roost render; the whole folder is replaced each time."
# Suffixes of the folders that stand beside the target while it is replaced.
_FRESH: Final = ".roost-new"
_OLD: Final = ".roost-old"
# From Linux' fcntl.h and fs.h.
_AT_CWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_UNSAFE: Final = re.compile(r"[^a-z0-9.-]+")


def file_name(manifest: Manifest) -> str:
    """`<kind>-<name>.yaml`, in lower case."""
    identity = manifest.identity
    return _UNSAFE.sub("-", f"{identity.kind}-{identity.name}.yaml".lower())


def files_of(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Name and content of each file of the folder: one an object, and the kustomization that lists them in order."""
    files: dict[str, str] = {}
    for manifest in manifests:
        name = file_name(manifest)
        if name in files or name == KUSTOMIZATION:
            group = _UNSAFE.sub("-", manifest.identity.api_version.lower())
            name = f"{name.removesuffix('.yaml')}.{group}.yaml"
        files[name] = manifest.text
    listed = "".join(f"  - {name}\n" for name in files) or "  []\n"
    files[KUSTOMIZATION] = (
        f"{MARK}\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{listed}"
    )
    return files


def is_ours(folder: Path) -> bool:
    """Whether `roost render` wrote this folder."""
    return _listed(folder) is not None


def write_folder(manifests: Sequence[Manifest], folder: str) -> None:
    """Replace `folder` by these manifests; on any failure it stays as it was.

    A process that is killed leaves the old folder or the new one, whole, and at most a hidden folder beside it, which
    the next run removes. Raises UsageError when it holds what `roost render` didn't write, or can't be written.
    """
    if not folder:
        raise UsageError('--output-dir "": is not a folder. Give a path.')
    try:
        target = _free_target(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        # Beside the target: a rename is atomic only within one file system.
        fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_FRESH, dir=target.parent))
    except OSError as error:
        raise _cannot_write(folder, error) from None
    lock = os.open(fresh, os.O_RDONLY)
    try:
        # Shows other runs that this folder is in use.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, content in files_of(manifests).items():
            (fresh / name).write_text(content, encoding="utf-8")
        fresh.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o777 & ~_umask())
        _swap(fresh, target)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    finally:
        # After an exchange, this is the old folder.
        shutil.rmtree(fresh, ignore_errors=True)
        os.close(lock)


def _swap(fresh: Path, target: Path) -> None:
    if not target.exists():
        fresh.rename(target)
        return
    if exchange(fresh, target):
        return
    # Without an exchange the old one steps aside first, and back if that fails: a folder can't be renamed over one
    # that has files.
    old = fresh.with_suffix(_OLD)
    target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step (Linux' renameat2); False when the system or the file system can't."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    # Every failure leaves both as they are, and a plain rename then gives the reason.
    return bool(rename(_AT_CWD, os.fsencode(one), _AT_CWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _sweep(target: Path) -> None:
    """Remove what killed runs left beside `target`; put a moved folder back if nothing has replaced it."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*"):
        # A further dot: that of another target, whose name begins like this one's.
        is_left = left.suffix in (_FRESH, _OLD) and "." not in left.stem.removeprefix(f".{target.name}.")
        if not is_left or left.is_symlink() or not left.is_dir():
            continue
        if _has_owner(left.with_suffix(_FRESH)):
            continue
        if left.suffix == _OLD and not target.exists():
            left.rename(target)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _has_owner(fresh: Path) -> bool:
    try:
        lock = os.open(fresh, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _free_target(folder: str) -> Path:
    """The folder to write. Raises UsageError when it has files that Roost didn't write."""
    given = Path(folder)
    if given.is_symlink() or (given.exists() and not given.is_dir()):
        raise UsageError(f"--output-dir {folder}: exists and is not a folder. Give another path.")
    target = given.resolve()
    if target in (Path.cwd(), *Path.cwd().parents):
        raise UsageError(f"--output-dir {folder}: is the current folder or above it. Give a folder below it.")
    listed = _listed(target) or set()
    entries = target.iterdir() if target.is_dir() else ()
    foreign = sorted(entry.name for entry in entries if entry.name not in listed or not _is_plain(entry))
    if foreign:
        shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise UsageError(
            f"--output-dir {folder}: holds what roost render did not write ({one_line(shown)}) and would replace. "
            "Give an empty or a new folder."
        )
    return target


def _is_plain(entry: Path) -> bool:
    return entry.is_file() and not entry.is_symlink()


def _listed(folder: Path) -> set[str] | None:
    """Names of the files that a kustomization of ours accounts for; None when there is none of ours."""
    try:
        text = (folder / KUSTOMIZATION).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if not text.startswith(MARK):
        return None
    return {KUSTOMIZATION, *(line.removeprefix("  - ") for line in text.splitlines() if line.startswith("  - "))}


def _cannot_write(folder: str, error: OSError) -> UsageError:
    return UsageError(f"--output-dir {folder}: can't be written ({error.strerror}). Nothing was changed.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
