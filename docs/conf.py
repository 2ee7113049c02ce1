"""Sphinx's settings for the documentation: `make docs`.

Owns how links leave this folder: those to files of the repository lead there once `release.toml`
says where it is, and are plain text until then. The lab's pages, lab/docs, are the site's folder
`lab`: tools/docs.sh copies both into the one folder that Sphinx reads.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
LAB: Final = ROOT / "lab" / "docs"
ADDRESSES: Final = tomllib.loads((ROOT / "release.toml").read_text(encoding="utf-8"))["addresses"]
REPOSITORY: Final[str] = os.environ.get("ROOST_REPOSITORY") or ADDRESSES["repository"]
# [text](target): up to two folders up and out of docs/, a folder, or the list that the first page
# includes.
LINK: Final = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")

project = "Roost"
copyright = "the Roost contributors"  # noqa: A001 - Sphinx's name
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
version = release
extensions = ["myst_parser", "sphinx_reredirects"]
root_doc = "index"
exclude_patterns = ["README.md", "_build"]
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["roost.css"]
html_js_files = ["site.js"]
html_search_scorer = "docs/_static/scorer.js"
html_logo = html_favicon = "images/icon.svg"
html_title = f"Roost {release}"
html_baseurl = os.environ.get("ROOST_DOCUMENTATION") or ADDRESSES["documentation"]
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    # the theme's buttons that fold parts have no name for a screen reader
    "collapse_navigation": True,
    "icon_links": [{"name": "Source", "url": REPOSITORY, "icon": "fa-solid fa-code"}]
    if REPOSITORY
    else [],
}
myst_heading_anchors = 6
# an <img> is a picture of the site, as ![]() is
myst_enable_extensions = ["colon_fence", "html_image"]
# Samples leave parts out (…) and hold templates of other programs.
suppress_warnings = ["misc.highlighting_failure"]
# A page that moves leaves its old name here: old page -> new address, relative to the old page.
redirects = {"README": "index.html"}
linkcheck_ignore = [r"https?://localhost", r"https?://[\w.-]*example\.(org|com)"]
linkcheck_timeout = 20
linkcheck_retries = 2
# Addresses with an anchor that a script makes.
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]


def follow(source: str, page: str) -> str:
    """The Markdown of `page` (a name such as how-to/flux) with links that lead out of docs/ made to
    work.
    """
    folder = (DOCS / page).parent

    def replace(match: re.Match[str]) -> str:
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        # A list of files, on the forge; of titles, here.
        text = "" if text == target and target.endswith(".md") else text
        if ":" in path or not path:
            return match[0]
        file = Path(os.path.normpath(folder / path))
        if file.is_relative_to(LAB):
            file = DOCS / "lab" / file.relative_to(LAB)
        if file == DOCS / "README.md":
            file = DOCS / "index.md"
        elif file in (DOCS / "decisions", DOCS / "lab" / "decisions"):
            file /= "index.md"
        if file.is_relative_to(DOCS):
            return f"[{text}]({os.path.relpath(file, folder)}{'#' * bool(anchor)}{anchor})"
        if not file.exists():
            return match[0]  # Sphinx says that it is missing
        if not REPOSITORY:
            return text
        return (
            f"[{text}]({REPOSITORY}/blob/main/{file.relative_to(ROOT)}{'#' * bool(anchor)}{anchor})"
        )

    return LINK.sub(replace, source)


def setup(app: Sphinx) -> None:
    """Called by Sphinx: each page is read through `follow`."""

    def read(_app: Sphinx, page: str, source: list[str]) -> None:
        source[0] = follow(source[0], page)

    def name_folds(_app: Sphinx, _error: Exception | None) -> None:
        # The theme gives what folds a part of the side bar no name for a screen reader.
        fold = '<summary><span class="toctree-toggle"'
        for page in Path(_app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            if fold in text:
                named = text.replace(
                    fold, fold.replace("<summary>", '<summary aria-label="Pages of this part">')
                )
                page.write_text(named, encoding="utf-8")

    app.connect("build-finished", name_folds)
    app.connect("source-read", read)
    app.connect("include-read", lambda _app, _path, _page, source: read(_app, "README", source))
