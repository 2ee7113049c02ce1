"""`roost render --output-dir`: manifests as files."""

from __future__ import annotations

import sys

from generator.render.output import write_folder
from roost.plain_render import RenderOptions, manifests


def run(options: RenderOptions, folder: str) -> int:
    """Replace `folder` by the manifests and a kustomization."""
    made = manifests(options)
    write_folder(made, folder)
    sys.stderr.write(f"{folder}: {len(made)} objects; apply with `kubectl apply -k {folder}`\n")
    return 0
