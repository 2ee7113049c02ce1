"""Find the pieces of the hub's own Python among its values, and what brings more of it.

Source: zero-to-jupyterhub 4.4, jupyterhub_config.py and templates/hub/deployment.yaml.
"""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Collection, Mapping
from typing import Final

from generator.importing.python_names import UNREADABLE
from generator.importing.source import HubPath, HubSection
from generator.importing.traits import entries_of
from generator.values.lookups import child, listing, mapping, text

# The chart's configuration runs each file of this folder.
_FOLDER: Final = "jupyterhub_config.d"
# The file that an argument names.
_NAMED: Final = re.compile(
    r"""
    (?<!\S)
    (?: (?:-f|--config) [\s=]+         # -f x, --config x, --config=x
      | -f (?=\S*\.(?:py|json)\b)     # -fx.py; other programs' flags end otherwise: cut -f1.5
    )
    ([^\s=]+)
    """,
    re.VERBOSE,
)
# Where the chart mounts its own configuration. Nobody can mount another file there: Kubernetes
# refuses two mounts at one path.
_CHARTS_FOLDER: Final = "/usr/local/etc/jupyterhub"
_CHARTS_FILE: Final = f"{_CHARTS_FOLDER}/jupyterhub_config.py"


def python_of(hub: HubSection) -> list[tuple[HubPath, str]]:
    """The hub's own Python with its keys, in the order in which it runs.

    Pieces are in `hub.extraFiles`, where they are mounted as configuration, and in
    `hub.extraConfig`.
    """
    files = mapping(child(hub.data, "hub", "extraFiles"))
    pieces: list[tuple[HubPath, object]] = [
        (("hub", "extraFiles", name, _key_of(file)), _text_of(file))
        for name, file in sorted(files.items())
        if _is_configuration(file)
    ]
    config = hub.get("hub.extraConfig", "any")
    if isinstance(config, Mapping):
        pieces += [(("hub", "extraConfig", name), code) for name, code in sorted(config.items())]
    else:
        pieces.append((("hub", "extraConfig"), config))
    return [(at, code) for at, code in pieces if isinstance(code, str) and code]


def python_elsewhere(hub: HubSection) -> tuple[HubPath, str] | None:
    """The key that brings Python which isn't among the hub's values, and what that is, for people;
    None: there is none.
    """
    for name, file in sorted(mapping(child(hub.data, "hub", "extraFiles")).items()):
        if _is_configuration(file) and not _text_of(file):
            return ("hub", "extraFiles", name), "its text isn't in this file"
    mounts = entries_of(child(hub.data, "hub", "extraVolumeMounts"))
    if any(map(_is_configuration, mounts)):
        return ("hub", "extraVolumeMounts"), f"files in {_FOLDER}"
    for key in ("command", "args"):
        words = " ".join(map(str, listing(child(hub.data, "hub", key))))
        own = [path for path in _NAMED.findall(words) if path != _CHARTS_FILE]
        if own:
            return ("hub", key), f"another configuration, {own[0]}"
    return None


def _is_configuration(mount: object) -> bool:
    """Whether something is mounted among the files that the hub runs, or may bring their folder."""
    path = text(child(mount, "mountPath"))
    return _FOLDER in path.split("/") or path.rstrip("/") == _CHARTS_FOLDER


def _key_of(file: object) -> str:
    return "stringData" if child(file, "stringData") else "binaryData"


def _text_of(file: object) -> str:
    """The text of an entry of `hub.extraFiles`; "": it has none that can be read."""
    key = _key_of(file)
    written = text(child(file, key))
    if key == "stringData":
        return written
    try:
        return base64.b64decode(written).decode()
    except ValueError:
        return ""


class _WithoutTexts(ast.NodeTransformer):
    """Takes docstrings out, and other texts that stand alone; and the overrides of profiles that
    were read.
    """

    def __init__(self, followed: Collection[str]) -> None:
        self._followed = followed

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Leave `pass` in the place of a text: a body may not be empty."""
        return ast.Pass() if _is_text(node) else self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        """Leave a profile's overrides out: what isn't carried over of them is named by itself."""
        self.generic_visit(node)
        if "profile_list" in self._followed:
            is_override = [
                isinstance(key, ast.Constant) and key.value == "kubespawner_override"
                for key in node.keys
            ]
            node.values = [
                ast.Constant(None) if is_read else value
                for value, is_read in zip(node.values, is_override, strict=True)
            ]
        return node


def without_comments(code: str, followed: Collection[str] = ()) -> str:
    """Code without comments and docstrings, which set nothing; as it is, if it can't be read.

    followed: traits that are mapped.
    """
    try:
        return ast.unparse(_WithoutTexts(followed).visit(ast.parse(code)))
    except UNREADABLE:
        return code


def _is_text(line: ast.Expr) -> bool:
    return isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
