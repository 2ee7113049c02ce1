"""Make the views for people who query the database themselves: `views.yaml` says what they show.

They are made anew after each migration, so a change there needs a migration, if an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
import yaml

SQLITE: Final = "sqlite"
HOUR_US: Final = 3_600_000_000
_CALL: Final = re.compile(r"\{(\w+):([^{}]*)\}")


@cache
def _declared() -> dict[str, Any]:
    declared: dict[str, Any] = yaml.safe_load(
        Path(__file__).with_name("views.yaml").read_text(encoding="utf-8")
    )
    return declared


def views() -> Mapping[str, Mapping[str, Any]]:
    """Each view by its name: comment, columns, what comes before SELECT (head), and what follows
    the columns (rest).
    """
    found: Mapping[str, Mapping[str, Any]] = _declared()["views"]
    return found


def make_views(connection: sa.Connection) -> None:
    """Make all views anew, with their comments where the database has them."""
    dialect = connection.dialect.name
    functions = _declared()["functions"][dialect]
    for name, view in views().items():
        if dialect == SQLITE:
            connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
        create = "CREATE VIEW" if dialect == SQLITE else "CREATE OR REPLACE VIEW"
        connection.execute(_text(f"{create} {name} AS {_select(view, functions)}"))
        if connection.dialect.supports_comments:
            connection.execute(_text(f"COMMENT ON VIEW {name} IS {_quoted(view['comment'])}"))
            for column, (_, comment) in view["columns"].items():
                connection.execute(
                    _text(f"COMMENT ON COLUMN {name}.{column} IS {_quoted(comment)}")
                )


def _select(view: Mapping[str, Any], functions: Mapping[str, str]) -> str:
    columns = ", ".join(
        f'{expression} AS "{name}"' for name, (expression, _) in view["columns"].items()
    )
    text = f"{view.get('head', '')} SELECT {columns} {view['rest']}".replace(
        "HOUR_US", str(HOUR_US)
    )
    # The innermost first.
    while found := _CALL.search(text):
        text = (
            text[: found.start()] + functions[found[1]].replace("@", found[2]) + text[found.end() :]
        )
    return " ".join(text.split())


def _text(statement: str) -> sa.TextClause:
    # Without parameters: colons are colons.
    return sa.text(statement.replace(":", "\\:"))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
