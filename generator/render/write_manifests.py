"""Write manifests: as a stream, or as a folder for `kubectl apply -k`.

The folder is replaced as a whole, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from generator.faults import UsageError, one_line
from generator.render.manifests import Manifest

KUSTOMIZATION: Final = "kustomization.yaml"
# The first line of Roost's kustomization. A folder without this line isn't Roost's, and is left
# alone.
FIRST_LINE: Final = "# Written by roost render; the whole folder is replaced each time."
_UNSAFE: Final = re.compile(r"[^a-z0-9.-]+")


def stream(manifests: Sequence[Manifest]) -> str:
    """All objects as one YAML stream for `kubectl apply -f -`."""
    return "".join(f"---\n{manifest.text}" for manifest in manifests)


def file_name(manifest: Manifest) -> str:
    """`<kind>-<name>.yaml`, in lower case."""
    identity = manifest.identity
    return _UNSAFE.sub("-", f"{identity.kind}-{identity.name}.yaml".lower())


def files_of(manifests: Sequence[Manifest]) -> dict[str, str]:
    """The contents of the folder's files, by name: a file for each object, and the kustomization,
    which lists the files in order.
    """
    files: dict[str, str] = {}
    for manifest in manifests:
        name = file_name(manifest)
        if name in files or name == KUSTOMIZATION:
            # Objects of two API groups may have the same kind and name.
            group = _UNSAFE.sub("-", manifest.identity.api_version.lower())
            name = f"{name.removesuffix('.yaml')}.{group}.yaml"
        files[name] = manifest.text
    resources = "".join(f"  - {name}\n" for name in files) or "  []\n"
    files[KUSTOMIZATION] = (
        f"{FIRST_LINE}\napiVersion: kustomize.config.k8s.io/v1beta1\nkind:"
        f" Kustomization\nresources:\n{resources}"
    )
    return files


def is_ours(folder: Path) -> bool:
    """Whether `roost render` wrote this folder."""
    return _files_of_roost(folder) is not None


def write_folder(manifests: Sequence[Manifest], folder: str) -> None:
    """Replace the files of `folder` by these manifests. On any failure the folder stays as it was.

    Raises UsageError if it holds files that `roost render` didn't write, or can't be written.
    """
    import tempfile  # noqa: PLC0415 - the import would slow down a render to stdout

    if not folder:
        raise UsageError('--output-dir "": is not a folder. Give a path.')
    try:
        target = _free_target(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the target's parent: a rename is atomic only within one file system.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as temporary:
            fresh = Path(temporary, "new")
            old = Path(temporary, "old")
            fresh.mkdir()
            for name, content in files_of(manifests).items():
                (fresh / name).write_text(content, encoding="utf-8")
            _swap(fresh, target, old)
    except OSError as error:
        raise UsageError(
            f"--output-dir {folder}: can't be written ({error.strerror}). Nothing was changed."
        ) from None


def _swap(fresh: Path, target: Path, old: Path) -> None:
    """Put the folder `fresh` where `target` was, with the permissions of `target`.

    A folder can't be renamed over a folder with files, so `target` first becomes `old`.
    """
    if not target.exists():
        fresh.rename(target)
        return
    fresh.chmod(target.stat().st_mode & 0o7777)
    target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        old.rename(target)
        raise


def _free_target(folder: str) -> Path:
    """The folder to write. Raises UsageError when it has files that Roost didn't write."""
    given = Path(folder)
    if given.is_symlink() or (given.exists() and not given.is_dir()):
        raise UsageError(f"--output-dir {folder}: exists and is not a folder. Give another path.")
    target = given.resolve()
    if target in (Path.cwd(), *Path.cwd().parents):
        raise UsageError(
            f"--output-dir {folder}: is the current folder or above it. Give a folder below it."
        )
    written_by_roost = _files_of_roost(target) or set()
    entries = target.iterdir() if target.is_dir() else ()
    foreign = sorted(
        entry.name
        for entry in entries
        if entry.name not in written_by_roost or entry.is_symlink() or not entry.is_file()
    )
    if foreign:
        shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise UsageError(
            f"--output-dir {folder}: holds what roost render did not write ({one_line(shown)}) and"
            " would replace. Give an empty or a new folder."
        )
    return target


def _files_of_roost(folder: Path) -> set[str] | None:
    """Names of the files that `roost render` wrote: its kustomization, and what that lists.

    None: the folder has no kustomization that `roost render` wrote.
    """
    try:
        text = (folder / KUSTOMIZATION).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if not text.startswith(FIRST_LINE):
        return None
    resources = [line.removeprefix("  - ") for line in text.splitlines() if line.startswith("  - ")]
    return {KUSTOMIZATION, *resources}
