"""Hold values against chart/values.schema.json, the schema that Helm enforces too."""

from __future__ import annotations

import json
from functools import cache

from jsonschema_rs import Draft7Validator

from generator.faults import Fault, KeyPath
from generator.package_data import chart_folder
from generator.schema.explain import Schema, explain
from generator.values.merge import Merged


@cache
def read_schema() -> Schema:
    """The chart's schema."""
    schema: Schema = json.loads((chart_folder() / "values.schema.json").read_text(encoding="utf-8"))
    return schema


@cache
def _validator(definition: str = "") -> Draft7Validator:
    schema = read_schema()
    if definition:
        schema = {"$ref": f"#/definitions/{definition}", "definitions": schema["definitions"]}
    return Draft7Validator(schema)


def fits(value: object, definition: str) -> bool:
    """Whether a value fits one of the schema's definitions."""
    return _validator(definition).is_valid(value)


def why_unfit(value: object, definition: str) -> str:
    """Why a value doesn't fit one of the schema's definitions, in the validator's words.

    "": it fits.
    """
    error = next(iter(_validator(definition).iter_errors(value)), None)
    return "" if error is None else error.message


def find_faults(merged: Merged) -> list[Fault]:
    """Every fault that the schema finds, with file and line."""
    return list(find_faults_by_path(merged).values())


def find_faults_by_path(merged: Merged) -> dict[KeyPath, Fault]:
    """The same faults as of `find_faults`, by the path of the faulty key."""
    if _validator().is_valid(merged.values):
        return {}
    return explain(merged, read_schema(), _validator().iter_errors(merged.values))
