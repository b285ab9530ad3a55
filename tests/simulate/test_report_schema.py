"""The schema of what `bayplan simulate -o json` writes is published as it is."""

import json
from pathlib import Path

from bayplan.simulate.report import schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "simulate.schema.json"


def test_the_published_schema_is_that_of_the_report():
    assert PUBLISHED.read_bytes() == schema()


def test_every_field_of_the_schema_that_people_see_is_in_the_document():
    text = (PUBLISHED.parent / "simulate.md").read_text()
    summary = json.loads(schema())["$defs"]["Summary"]["properties"]
    assert [name for name in summary if f"`{name}`" not in text] == []
