"""The schema of what `bayplan simulate -o json` writes is published as it is."""

import json
from pathlib import Path

import msgspec

from bayplan.simulate.report import Comparison, Report

PUBLISHED = Path(__file__).parents[2] / "docs" / "simulate.schema.json"


def schema():
    """What `encode` writes; where it changed, this is written to the published file."""
    (report, comparison), components = msgspec.json.schema_components(
        [Report, Comparison], ref_template="#/$defs/{name}"
    )
    described = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What bayplan simulate -o json writes, and with several --config",
        "oneOf": [report, comparison],
        "$defs": components,
    }
    return msgspec.json.format(msgspec.json.encode(described), indent=2) + b"\n"


def test_the_published_schema_is_that_of_the_report():
    assert PUBLISHED.read_bytes() == schema()


def test_every_field_of_the_schema_that_people_see_is_in_the_document():
    text = (PUBLISHED.parent / "simulate.md").read_text()
    summary = json.loads(schema())["$defs"]["Summary"]["properties"]
    assert [name for name in summary if f"`{name}`" not in text] == []
