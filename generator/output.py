"""Write manifests: as one stream, or as a folder that `kubectl apply -k` takes, replaced whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from generator.faults import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from generator.render import Manifest

KUSTOMIZATION: Final = "kustomization.yaml"
# First line of our kustomization: a folder without it is somebody else's, and is left alone.
MARK: Final = "# Written by roost render; the whole folder is replaced each time."
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


def write_folder(manifests: Sequence[Manifest], folder: str) -> None:
    """Replace `folder` by these manifests; on any failure it stays as it was.

    Raises UsageError when it holds what `roost render` didn't write, or can't be written.
    """
    target = Path(folder).absolute()
    _check_ours(target, folder)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target: a rename is atomic only within one file system.
        fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent))
    except OSError as error:
        raise _cannot_write(folder, error) from None
    try:
        for name, content in files_of(manifests).items():
            (fresh / name).write_text(content, encoding="utf-8")
        fresh.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o777 & ~_umask())
        _swap(fresh, target)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(fresh: Path, target: Path) -> None:
    if not target.exists():
        fresh.rename(target)
        return
    # A folder can't be renamed over one that has files: the old one steps aside first, and back if that fails.
    old = fresh.with_suffix(".old")
    target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _check_ours(target: Path, folder: str) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError(f"--output-dir {folder}: exists and is no folder. Give another path.")
    if not target.is_dir() or not any(target.iterdir()):
        return
    kustomization = target / KUSTOMIZATION
    try:
        is_ours = kustomization.read_text(encoding="utf-8").startswith(MARK)
    except (OSError, UnicodeDecodeError):
        is_ours = False
    if not is_ours:
        raise UsageError(
            f"--output-dir {folder}: holds files that roost render did not write, and would replace. "
            "Give an empty or a new folder."
        )


def _cannot_write(folder: str, error: OSError) -> UsageError:
    return UsageError(f"--output-dir {folder}: can't be written ({error.strerror}). Nothing was changed.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
