"""Pages that messages name, the pages of the command line, and the built site in a browser."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest
from selenium.webdriver import Chrome

from tests.harness import browser
from tests.harness.axe import serious_findings
from tests.harness.waiting import wait_until
from tools import write_drawings
from tools.root import ROOT

# A page that a message or a comment names, perhaps with a section.
PAGE: Final = re.compile(r"(?<![\w./])((?:lab/)?docs/[\w/-]+\.md)(?:#([\w-]+))?")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
NAMES_PAGES: Final = frozenset({".py", ".yaml", ".j2", ".txt", ".sh"})


TARGET: Final = re.compile(r"""<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"]*)\"""")
NAME: Final = re.compile(r"""\b(?:id|name)="([^"]*)\"""")
# Samples whose lines go on outside their frame.
CUT: Final = """return [...document.querySelectorAll("pre")]
  .filter((sample) => sample.scrollWidth > sample.clientWidth)
  .map((sample) => sample.textContent.slice(0, 80))"""


# Tables that are wider than the page; a phone scrolls those of numbers.
WIDE: Final = """return [...document.querySelectorAll(".bd-article table")]
  .filter((table) => innerWidth > 600 || table.matches(".cards"))
  .filter((table) => table.scrollWidth > table.parentElement.clientWidth + 1)
  .map((table) => table.textContent.slice(0, 80))"""
# Words of tables that go on in the next line: nobody reads letters in a column. Code may break.
BROKEN: Final = r"""const found = [];
for (const cell of document.querySelectorAll(".bd-article :is(td, th)")) {
  if (innerWidth < 600 && cell.closest(".cards thead")) continue;
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("code")) continue;
    for (const word of node.data.matchAll(/[\p{L}\p{N}.,]+/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const boxes = [...range.getClientRects()].filter((box) => box.width);
      const lines = new Set(boxes.map((box) => Math.round(box.top)));
      if (lines.size > 1) found.push(word[0]);
    }
  }
}
return found;"""
PHONE: Final = 390


@pytest.fixture(scope="module")
def site() -> Path:
    done = subprocess.run([ROOT / "tools/docs.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ROOT / "build/docs"


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    if missing := browser.missing():
        pytest.skip(missing)
    with browser.open_browser() as opened:
        yield opened


@pytest.mark.slow
def test_links_and_pictures_of_the_built_site_are_there(site: Path) -> None:
    texts = {
        page: page.read_text(encoding="utf-8")
        for page in site.rglob("*.html")
        if "_static" not in page.parts
    }
    names = {page: {unquote(name) for name in NAME.findall(text)} for page, text in texts.items()}
    broken, found = [], 0
    for page, text in texts.items():
        for target in TARGET.findall(text):
            path, _, anchor = unquote(
                target.partition("?")[0] if "#" not in target else target
            ).partition("#")
            if re.match(r"[a-z]+:|//", target):
                continue
            found += 1
            file = (page.parent / path).resolve() if path else page
            if not file.is_file() or (anchor and file in names and anchor not in names[file]):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []
    assert found > 1000


@pytest.mark.slow
def test_the_drawings_show_what_the_replay_does() -> None:
    assert write_drawings.main(["--check"]) == 0


@pytest.mark.slow
def test_samples_and_tables_are_whole_on_a_desk_and_on_a_phone(site: Path, driver: Chrome) -> None:
    cut = {}
    seen = 0
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        if "<pre" not in text and "<table" not in text:
            continue
        seen += 1
        driver.get(page.as_uri())
        for width in (1280, PHONE):
            browser.set_size(driver, width, 900)
            name = f"{page.relative_to(site)} at {width} px"
            cut[name] = [
                part for script in (CUT, WIDE, BROKEN) for part in driver.execute_script(script)
            ]
            if driver.execute_script("return document.documentElement.scrollWidth") > width:
                cut[name].append("the page")
    assert seen > 60
    assert {name: parts for name, parts in cut.items() if parts} == {}


@pytest.mark.slow
def test_a_sample_is_copied_without_what_it_prints(site: Path, driver: Chrome) -> None:
    driver.get((site / "how-to" / "ci.html").as_uri())
    driver.execute_script(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; };"
        "const sample = document.querySelector('div.highlight pre');"
        "sample.textContent = '$ roost validate\\nfine\\n$ roost render';"
    )
    button = driver.find_element("css selector", "div.highlight .copy")
    assert min(button.size["width"], button.size["height"]) >= 24
    button.click()
    assert driver.execute_script("return window.copied") == "roost validate\nroost render"
    assert button.text == "Copied"


@pytest.mark.slow
def test_search_finds_what_to_do_before_how_it_was_decided(site: Path, driver: Chrome) -> None:
    results = (
        "return [...document.querySelectorAll('#search-results li > a')]"
        ".map((one) => one.getAttribute('href'))"
    )
    for words in ("placeholders", "preemption"):
        driver.get("about:blank")
        driver.get(f"{(site / 'search.html').as_uri()}?q={words}")
        wait_until(lambda: "finished" in driver.find_element("id", "search-results").text)
        pages = driver.execute_script(results)
        kinds = [page.partition("/")[0] for page in pages]
        assert "decisions" in kinds, words
        # Behind all that isn't the lab's.
        decided = kinds.index("decisions")
        assert set(kinds[decided:]) <= {"decisions", "lab", "upstream"}, (words, pages)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["index", "how-to/ci", "placement", "command-line", "decisions/0003-names"]
)
def test_axe_finds_nothing_serious_on_the_site(site: Path, driver: Chrome, page: str) -> None:
    # The last is A4's, less margins.
    for width, media in ((390, ""), (1440, ""), (718, "print")):
        for scheme in (browser.LIGHT, browser.DARK):
            browser.set_size(driver, width, 900)
            browser.set_scheme(driver, scheme, media)
            driver.get((site / f"{page}.html").as_uri())
            # A colour that is still on its way is none that anybody reads.
            driver.execute_script("document.getAnimations().forEach((one) => one.finish())")
            assert serious_findings(driver) == [], (width, scheme)
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    browser.set_scheme(driver, browser.LIGHT)


def test_pages_and_sections_that_messages_and_comments_name_exist() -> None:
    folders = (
        "generator webhook roost roost_core lab/roost_lab chart templates lab/benchmarks tools"
    )
    files = [
        path
        for folder in folders.split()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in NAMES_PAGES
    ]
    missing = []
    for path in files:
        for page, anchor in PAGE.findall(path.read_text(encoding="utf-8")):
            file = ROOT / page
            headings = HEADING.findall(file.read_text(encoding="utf-8")) if file.is_file() else []
            if not file.is_file() or (
                anchor
                and anchor
                not in [
                    re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
                    for heading in headings
                ]
            ):
                missing.append(f"{path.relative_to(ROOT)}: {page}#{anchor}")
    assert missing == []
