"""The documentation's site: its order, links that leave it, and pages that repeat what the code says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tools import write_command_line

if TYPE_CHECKING:
    from types import ModuleType

REPOSITORY: Final = Path(__file__).resolve().parents[3]
DOCS: Final = REPOSITORY / "docs"
SECTIONS: Final = ("tutorials", "how-to", "reference", "explanation")
# CamelCase words in the controllers that are no reasons of Events: Kubernetes' own words, and reasons of conditions.
EVENT: Final = re.compile(r'(?:reason=|, |= )"((?:[A-Z][a-z]+){2,})"')

# A page that a message or a comment names, perhaps with a section.
PAGE: Final = re.compile(r"(?<![\w./])((?:lab/)?docs/[\w/-]+\.md)(?:#([\w-]+))?")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
NAMES_PAGES: Final = frozenset({".py", ".yaml", ".j2", ".txt", ".sh"})


def in_toctree(section: str) -> list[str]:
    """Pages of a section, from docs/."""
    text = (DOCS / section / "index.md").read_text(encoding="utf-8")
    entries = text.partition(":maxdepth: 1\n\n")[2].partition("\n```")[0].split()
    return [entry.removeprefix("/") if entry.startswith("/") else f"{section}/{entry}" for entry in entries]


def in_list(section: str) -> list[str]:
    """Pages of a section in the first column of docs/README.md."""
    title = section.capitalize()
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    targets = re.findall(r"^\| \[[^\]]+\]\(([^)]+)\) \|", part, re.MULTILINE)
    return ["decisions/index" if target == "decisions/" else target.removesuffix(".md") for target in targets]


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("section", SECTIONS)
def test_list_and_site_have_the_same_pages_in_the_same_order(section: str) -> None:
    assert in_list(section) == in_toctree(section) != []


def test_each_page_is_in_one_section() -> None:
    listed = [page for section in SECTIONS for page in in_toctree(section)]
    pages = {
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in DOCS.rglob("*.md")
        if path.name not in ("README.md", "index.md") and path.parent.name != "decisions"
    }
    assert sorted(listed) == sorted({*pages, "decisions/index"})


def test_a_link_out_of_the_documentation_is_text_until_the_repository_is_known(
    conf: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "REPOSITORY", "")
    source = "See [the `values`](../chart/values.yaml) and [Karpenter](https://karpenter.sh)."
    assert conf.follow(source, "values") == "See the `values` and [Karpenter](https://karpenter.sh)."
    monkeypatch.setattr(conf, "REPOSITORY", "https://forge.example.org/roost")
    assert "[the `values`](https://forge.example.org/roost/blob/main/chart/values.yaml)" in conf.follow(
        source, "values"
    )


def test_links_that_stay_inside_are_left_alone_and_missing_files_are_sphinxs_to_find(conf: ModuleType) -> None:
    source = "[a](placement.md#the-image-gate) [b](../nothing.md) [c](#here)"
    assert conf.follow(source, "values") == source


def test_the_labs_pages_are_a_folder_of_the_site(conf: ModuleType) -> None:
    assert conf.follow("[a](../lab/docs/view.md#b)", "placement") == "[a](lab/view.md#b)"
    assert conf.follow("[a](../../docs/placement.md) [b](view.md)", "lab/traces") == "[a](../placement.md) [b](view.md)"


def test_lists_that_the_site_has_as_pages_of_their_own_are_found_there(conf: ModuleType) -> None:
    assert conf.follow("[all](../README.md), [why](../decisions/)", "how-to/flux") == (
        "[all](../index.md), [why](../decisions/index.md)"
    )


def test_a_list_of_files_is_a_list_of_titles(conf: ModuleType) -> None:
    assert conf.follow("[values.md](values.md), [all](values.md)", "README") == "[](values.md), [all](values.md)"


def test_an_address_is_known_in_one_place_only() -> None:
    text = (REPOSITORY / "release.toml").read_text(encoding="utf-8")
    assert re.findall(r'^(\w+) = "[^"]*"', text, re.MULTILINE) == ["repository", "documentation", "image", "charts"]


def test_the_command_lines_pages_have_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    page, lab = write_command_line.page(), write_command_line.lab_page()
    assert {"roost records export", "roost records import"} <= set(re.findall(r"^## (roost .+)$", lab, re.MULTILINE))
    assert "--certificate-folder" in page.partition("## roost webhook")[2].partition("## ")[0]
    assert write_command_line.main(["--wrong"]) == 2
    assert "usage: " in capsys.readouterr().err


def test_pages_and_sections_that_messages_and_comments_name_exist() -> None:
    folders = (
        "generator",
        "webhook",
        "roost",
        "roost_core",
        "lab/roost_lab",
        "chart",
        "templates",
        "benchmarks",
        "tools",
    )
    files = [path for folder in folders for path in (REPOSITORY / folder).rglob("*") if path.suffix in NAMES_PAGES]
    missing = []
    for path in files:
        for page, anchor in PAGE.findall(path.read_text(encoding="utf-8")):
            file = REPOSITORY / page
            headings = HEADING.findall(file.read_text(encoding="utf-8")) if file.is_file() else []
            if not file.is_file() or (anchor and anchor not in [slug(heading) for heading in headings]):
                missing.append(f"{path.relative_to(REPOSITORY)}: {page}#{anchor}")
    assert missing == []


def slug(heading: str) -> str:
    """The anchor of a heading, as forges and Sphinx make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_the_page_of_names_has_each_reason_of_an_event() -> None:
    page = (DOCS / "reference" / "names.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page.partition("## Events")[2].partition("\n## ")[0], re.MULTILINE)
    texts = [path.read_text(encoding="utf-8") for path in (REPOSITORY / "roost" / "controllers").rglob("*.py")]
    assert [reason for reason in listed if not any(f'"{reason}"' in text for text in texts)] == []
    others = {
        "MemoryPressure",
        "ImagesMissing",
        "SwitchedOff",
        "PullFails",
        "ImagesPulled",
        "DeadlineExceeded",
        "Uninstalled",
        "NotIn",
    }
    kinds = {"ConfigMap", "StatefulSet", "DaemonSet", "DeleteOptions"}
    written = {
        reason for text in texts if "Notice" in text for reason in EVENT.findall(text) if reason not in others | kinds
    }
    assert len(written) > 12
    assert written - set(listed) == set()


def test_the_page_of_names_has_each_name_of_our_domain() -> None:
    page = (DOCS / "reference" / "names.md").read_text(encoding="utf-8")
    code = (REPOSITORY / "roost_core/placement/labels.py").read_text(encoding="utf-8")
    names = re.findall(r'"roost\.hub\.jupyter\.org/([\w-]+)"', code)
    assert len(names) > 7
    assert [name for name in names if name not in page] == []
