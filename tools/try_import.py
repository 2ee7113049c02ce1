"""Import every values file below a folder, validate the results and print a table of what happened.

    .venv/bin/python tools/try_import.py FOLDER…

Exit code 0: every file was imported to valid values or refused with a fault; 1: one was not; 2:
wrong usage.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from generator.faults import ValuesError
from generator.importing.importer import import_layers
from generator.package_data import chart_folder
from generator.pipeline import find_faults
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release_name import Release

_KEYS_SHOWN = 25
# The nesting before a hub's keys, and what differs from hub to hub.
_NESTING = re.compile(r"^(?:[\w-]+\.)*?jupyterhub\.")


def main(folders: list[str]) -> int:
    """See the module's docstring."""
    if not folders or not all(Path(folder).is_dir() for folder in folders):
        sys.stderr.write("usage: tools/try_import.py FOLDER…\n")
        return 2
    outcomes: Counter[str] = Counter()
    unmapped: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    defaults = load((chart_folder() / "values.yaml").read_bytes(), "chart/values.yaml")
    paths = sorted(
        path for folder in folders for path in Path(folder).rglob("*.y*ml") if path.is_file()
    )
    for path in paths:
        try:
            result = import_layers([(str(path), path.read_bytes())])
        except ValuesError as error:
            is_encrypted = "SOPS" in str(error)
            outcomes["encrypted" if is_encrypted else "refused with a fault"] += 1
            if not is_encrypted:
                print(f"refused: {error.faults[0]}")
            continue
        outcomes["imported"] += 1
        merged = merge_values(defaults, [load(result.to_yaml().encode(), f"import of {path}")])
        found = [fault for fault in find_faults(merged, Release()) if fault.severity == "error"]
        for fault in found:
            print(f"INVALID: {fault}")
            faults[fault.key] += 1
        outcomes["valid" if not found else "INVALID"] += 1
        unmapped.update(_NESTING.sub("", note.key) for note in result.unmapped)
    print(
        f"\n{len(paths)} files: "
        + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    )
    print("most frequent keys that were not mapped:")
    for key, count in unmapped.most_common(_KEYS_SHOWN):
        print(f"{count:6} {key}")
    return 1 if outcomes["INVALID"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
