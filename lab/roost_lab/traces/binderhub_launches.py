"""Read launches as mybinder.org's public archive has them: BinderHub's launch events, versions 1 to
6.

Sources: BinderHub's binderhub/event-schemas/launch.json and its history (origin from 3, ref from 4,
build_token from 5, request_origin from 6); mybinder.org's "Analytics Events Archive": times are UTC
and rounded down to the minute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from roost_lab.traces.counts import show
from roost_lab.traces.launch_line import LONGEST, LaunchDetails, UnusableLine

SCHEMA: Final = "binderhub.jupyter.org/launch"
VERSIONS: Final = range(1, 7)
# Versions that say which commit was launched.
WITH_REF: Final = range(4, 7)
PROVIDERS: Final = frozenset(
    {
        "GitHub",
        "Gist",
        "GitLab",
        "Git",
        "Zenodo",
        "Figshare",
        "Hydroshare",
        "Dataverse",
        "CKAN",
        "SWHID",
    }
)
# Providers that ignore the case of repositories' names.
_FOLDING: Final = frozenset({"GitHub", "Gist", "GitLab"})
_HASH: Final = re.compile(r"[0-9a-f]{40}", re.ASCII)
_FAILED: Final = "`status` is failure: played all the same, somebody asked"
_MOST_CACHED: Final = 50_000


def read_entry(entry: Mapping[str, Any]) -> LaunchDetails:
    """What a line's launch is of. Raises UnusableLine."""
    status = entry.get("status")
    if status not in ("success", "failure"):
        raise UnusableLine(f"`status` is {show(status)}, neither success nor failure")
    provider = entry.get("provider")
    spec = entry.get("spec")
    ref = entry.get("ref", "") if entry["version"] in WITH_REF else ""
    is_text = type(provider) is str and type(spec) is str and type(ref) is str
    launch = (_read_cached if is_text else read_launch)(provider, spec, ref)
    return launch if status == "success" else launch._replace(notes=(_FAILED, *launch.notes))


def read_launch(provider: object, spec: object, ref: object) -> LaunchDetails:
    """What was launched. Raises UnusableLine.

    The repository is folded where the provider folds names; the image is not, since BinderHub
    hashes names as typed. With a resolved ref (from version 4 on) the image is that of the ref,
    whatever branch was asked for.
    """
    if not isinstance(provider, str) or not 0 < len(provider) <= LONGEST:
        raise UnusableLine("`provider` isn't a name")
    if not isinstance(spec, str) or not 0 < len(spec) <= LONGEST:
        raise UnusableLine("`spec` isn't a text of 1 to 4096 characters")
    typed, asked = split_spec(provider, spec)
    repository = unquote(typed).removesuffix(".git")
    if provider in _FOLDING:
        repository = repository.casefold()
    image = f"{provider}/{spec}"
    notes: tuple[str, ...] = ()
    if isinstance(ref, str) and 0 < len(ref) <= LONGEST:
        image = f"{provider}/{typed}@{ref}"
    elif _HASH.fullmatch(asked):
        image = f"{provider}/{typed}@{asked}"
    if provider not in PROVIDERS:
        notes = (f"provider {show(provider)} is unknown: its names are taken as they are",)
    return LaunchDetails(f"{provider}/{repository}", image, notes=notes)


_read_cached = lru_cache(_MOST_CACHED)(read_launch)


def split_spec(provider: str, spec: str) -> tuple[str, str]:
    """(repository as typed, ref) of a provider's spec; ref "" where it has none.

    GitHub and Gist: owner/name/ref, the ref may have slashes. GitLab and Git: escaped project or
    URL, then the ref; the archive of 2019 has them unescaped, so there the last part is the ref.
    Others name one thing, often with slashes.
    """
    if provider in ("GitHub", "Gist"):
        parts = spec.split("/", 2)
        return "/".join(parts[:2]), parts[2] if len(parts) == 3 else ""
    if provider in ("GitLab", "Git"):
        head, _, tail = spec.partition("/")
        if "%" not in head and "/" in tail:
            head, _, tail = spec.rpartition("/")
        return head, tail
    return spec, ""
