"""Write chart/README.md and what Chart.yaml repeats: the icon, the images.

.venv/bin/python -m tools.write_chart_pages            write them
.venv/bin/python -m tools.write_chart_pages --check    exit 1 unless they are fresh
"""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from generator.render.kube_scheduler import SCHEDULER_TAGS
from tools.generated_file import write_or_check
from tools.root import ROOT
from tools.write_values_reference import comments_of_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

CHART: Final = ROOT / "chart"
WRITER: Final = "python -m tools.write_chart_pages"
_HEAD: Final = """# Roost

{description}.

Tested with Kubernetes {minors}, Helm 4 and 3. It is a release next to
zero-to-jupyterhub's or BinderHub's in the hub's namespace, and patches nothing.
If its webhook is down, pods are created as the hub sends them.

```console
$ helm install roost CHART --namespace HUBS_NAMESPACE --values values.yaml --wait
$ helm test roost --namespace HUBS_NAMESPACE
```

`CHART` is this folder, its package, or its address in a registry. `roost import`, of the
Python package `roost`, writes `values.yaml` from your hub's values.
`helm uninstall` first removes Roost's labels from the nodes.

## Values

What there is; `helm show values` prints every key with what it does, its unit and the reason
for its default. `values.schema.json` checks yours.

| key | what for |
|---|---|
"""


def readme() -> str:
    """chart/README.md, as it should be."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    minors = f"{min(SCHEDULER_TAGS)} to {max(SCHEDULER_TAGS)}"
    groups = comments_of_groups()
    rows = [
        f"| `{key}` | {_first_sentence(comment) or _keys(_values()[key])} |\n"
        for key, comment in groups
    ]
    return _HEAD.format(
        description=chart["description"].replace(" - ", ": "), minors=minors
    ) + "".join(rows)


def chart_file() -> str:
    """chart/Chart.yaml with the icon of docs/images/icon.svg and the images of values.yaml."""
    text = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    icon = base64.b64encode((ROOT / "docs" / "images" / "icon.svg").read_bytes()).decode()
    text = re.sub(
        r"^icon: .*$", f"icon: data:image/svg+xml;base64,{icon}", text, flags=re.MULTILINE
    )
    listed = "".join(f"    - {{name: {name}, image: {image}}}\n" for name, image in images())
    block = re.compile(r"(^  artifacthub\.io/images: \|\n)(?:    .*\n)*", re.MULTILINE)
    return block.sub(lambda match: match[1] + listed, text)


def images() -> list[tuple[str, str]]:
    """Images that the chart's defaults name in registries; Roost's own is in one from its release
    on.
    """
    values = _values()
    scheduler = values["scheduler"]["image"]
    placeholder = values["placeholder"]["image"]
    found = [
        (f"kube-scheduler-{minor}", f"{scheduler['name']}:{tag}")
        for minor, tag in SCHEDULER_TAGS.items()
    ]
    found.append(("placeholder", f"{placeholder['name']}:{placeholder['tag']}"))
    own = values["image"]["name"]
    if "/" in own:
        version = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"]
        found.append(("roost", f"{own}:{version}"))
    return found


def main(arguments: list[str]) -> int:
    """Write the files, or check them."""
    return write_or_check(_files(), arguments, WRITER)


def _files() -> Iterator[tuple[Path, str]]:
    # Chart.yaml first: the README quotes it.
    yield CHART / "Chart.yaml", chart_file()
    yield CHART / "README.md", readme()


def _values() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return values


def _keys(group: dict[str, Any]) -> str:
    """What a group without a comment holds; the comment above the first of two keys stands for
    both.
    """
    return ", ".join(f"`{key}`" for key in group)


def _first_sentence(comment: str) -> str:
    """Up to the first full stop that ends a sentence."""
    return re.split(r"(?<=\.) (?=[A-Z])", comment)[0].replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
