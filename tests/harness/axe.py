"""axe-core, which finds what some people can't read or reach on a page: pinned, and fetched once by
npm.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.harness.binaries import cache_root

VERSION = "4.14.1"
INTEGRITY = (
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09"
    "a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => done(violations
  .filter(({impact}) => impact === "serious" || impact === "critical")
  .flatMap(({id, nodes}) => nodes.map((node) =>
    `${id}: ${node.target} ${node.html.slice(0, 200)} ${node.failureSummary}`))),
  (error) => done([String(error)]));
"""


def axe_script() -> str:
    """The text of axe.min.js; skips the test where npm is missing, unless in CI."""
    file = cache_root() / "axe-core" / VERSION / "axe.min.js"
    if not file.exists():
        _fetch(file)
    return file.read_text(encoding="utf-8")


def _fetch(file: Path) -> None:
    if (npm := shutil.which("npm")) is None:
        say_missing = pytest.fail if os.environ.get("CI") else pytest.skip
        say_missing("no npm, which fetches axe-core: apt-get install npm")
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        subprocess.run(
            [npm, "pack", "--silent", f"axe-core@{VERSION}"],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        (packed,) = Path(folder).glob("*.tgz")
        found = f"sha512-{base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()}"
        assert found == INTEGRITY, f"axe-core {VERSION}: found {found}, expected {INTEGRITY}"
        with tarfile.open(packed) as archive:
            archive.extract("package/axe.min.js", folder, filter="data")
        (Path(folder) / "package" / "axe.min.js").rename(file)


def serious_findings(driver: Any) -> list[str]:
    """What is seriously or critically wrong with the open page: rule, element and what to mend."""
    driver.set_script_timeout(60)
    # By the browser's tools, which a page's content security policy doesn't bind.
    driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe_script()})
    found: list[str] = driver.execute_async_script(_RUN)
    return found
