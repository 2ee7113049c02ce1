"""Match a schema's patterns as Helm does."""

from __future__ import annotations

import re
from functools import cache

# A JSON Schema, or a part of one.
Schema = dict[str, object]


def matches(pattern: str, text: str) -> bool:
    """Match as Helm's (Go's) regular expressions do."""
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # JSON Schema's `$` is the very end; Python's also stands before a last newline.
    return re.compile(re.sub(r"\$(?=$|\))", r"\\Z", pattern), re.ASCII)
