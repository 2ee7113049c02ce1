"""Read the launch events of BinderHub, versions 1 to 6, as mybinder.org's public archive has them.

Times in the archive are UTC, and rounded down to the minute.

Sources: mybinder.org's "Analytics Events Archive"; BinderHub's binderhub/event-schemas/launch.json
and its history. Version 3 added origin, version 4 ref, version 5 build_token, version 6
request_origin.
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
# Versions that say in `ref` which commit was launched.
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
_IGNORING_CASE: Final = frozenset({"GitHub", "Gist", "GitLab"})
_COMMIT_HASH: Final = re.compile(r"[0-9a-f]{40}", re.ASCII)
_FAILED: Final = "`status` is failure: played all the same, somebody asked"
# Launches of popular repositories are repeated often.
_MOST_CACHED: Final = 50_000


def read_entry(entry: Mapping[str, Any]) -> LaunchDetails:
    """What was launched, by a line of a trace. Raises UnusableLine."""
    status = entry.get("status")
    if status not in ("success", "failure"):
        raise UnusableLine(f"`status` is {show(status)}, neither success nor failure")
    provider = entry.get("provider")
    spec = entry.get("spec")
    ref = entry.get("ref", "") if entry["version"] in WITH_REF else ""
    if type(provider) is str and type(spec) is str and type(ref) is str:
        launch = _read_cached(provider, spec, ref)
    else:
        # A value of JSON that is no text may have no hash, so the cache can't look it up.
        launch = read_launch(provider, spec, ref)
    if status == "failure":
        return launch._replace(notes=(_FAILED, *launch.notes))
    return launch


def read_launch(provider: object, spec: object, ref: object) -> LaunchDetails:
    """What was launched. Raises UnusableLine.

    provider, spec, ref: the line's values, of any type of JSON. ref: the commit that was launched;
    "" where the line doesn't say it.

    The repository's name is in small letters where its provider ignores case. The image's name is
    as typed, since BinderHub hashes names as typed. It ends with the commit, where that is known,
    whatever branch was asked for.
    """
    if not isinstance(provider, str) or not 0 < len(provider) <= LONGEST:
        raise UnusableLine("`provider` isn't a name")
    if not isinstance(spec, str) or not 0 < len(spec) <= LONGEST:
        raise UnusableLine("`spec` isn't a text of 1 to 4096 characters")
    typed_repository, typed_ref = split_spec(provider, spec)
    repository = unquote(typed_repository).removesuffix(".git")
    if provider in _IGNORING_CASE:
        repository = repository.casefold()
    if isinstance(ref, str) and 0 < len(ref) <= LONGEST:
        image = f"{provider}/{typed_repository}@{ref}"
    elif _COMMIT_HASH.fullmatch(typed_ref):
        image = f"{provider}/{typed_repository}@{typed_ref}"
    else:
        image = f"{provider}/{spec}"
    notes: tuple[str, ...] = ()
    if provider not in PROVIDERS:
        notes = (f"provider {show(provider)} is unknown: its names are taken as they are",)
    return LaunchDetails(f"{provider}/{repository}", image, notes=notes)


_read_cached = lru_cache(_MOST_CACHED)(read_launch)


def split_spec(provider: str, spec: str) -> tuple[str, str]:
    """The repository as typed, and the ref, of a provider's spec; ref "" where it has none.

    GitHub and Gist: owner/name/ref. The ref may have slashes.
    GitLab and Git: the project or URL, escaped, then a slash and the ref. In the archive of 2019
    it isn't escaped: then the ref is the part behind the last slash.
    Other providers: the spec is all a name, often with slashes.
    """
    if provider in ("GitHub", "Gist"):
        parts = spec.split("/", 2)
        ref = parts[2] if len(parts) == 3 else ""
        return "/".join(parts[:2]), ref
    if provider in ("GitLab", "Git"):
        repository, _, ref = spec.partition("/")
        is_unescaped = "%" not in repository and "/" in ref
        if is_unescaped:
            repository, _, ref = spec.rpartition("/")
        return repository, ref
    return spec, ""
