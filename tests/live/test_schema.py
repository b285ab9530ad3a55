"""The schema of what the API of a running scheduler answers is published as it is, and answers are as it says."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.live.live_scene import LiveScene, pod_body

from bayplan.live.answers import (
    DecisionsAnswer,
    ExplanationAnswer,
    NodeAnswer,
    NodesAnswer,
    QueueAnswer,
    SimulationAnswer,
    SummaryAnswer,
)

PUBLISHED = Path(__file__).parents[2] / "docs" / "live-api.schema.json"
ANSWERS = (
    SummaryAnswer,
    NodesAnswer,
    NodeAnswer,
    QueueAnswer,
    DecisionsAnswer,
    ExplanationAnswer,
    SimulationAnswer,
)


def schema():
    """What docs/live-api.schema.json holds; `python -m tests.live.test_schema` writes it anew."""
    _, components = msgspec.json.schema_components(ANSWERS, ref_template="#/$defs/{name}")
    described = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the API of a running bayplan answers",
        "$defs": components,
    }
    return msgspec.json.format(msgspec.json.encode(described), indent=2) + b"\n"


def test_the_published_schema_is_that_of_the_answers():
    assert PUBLISHED.read_bytes() == schema()


@pytest.mark.parametrize("tried", [False, True])
async def test_every_answer_has_every_field_of_its_kind_and_no_other(tried):
    scene = LiveScene()
    scene.node("n1", cpu="4", labels={"a": "b"})
    scene.pod("small")
    if tried:
        await scene.attempt()
        scene.pod("big", cpu="9")
        await scene.attempt()
    inspector = scene.inspector
    answers = [
        (SummaryAnswer, await inspector.summary()),
        (NodesAnswer, await inspector.nodes()),
        (NodeAnswer, await inspector.node("n1")),
        (QueueAnswer, await inspector.queue_page(0, 10)),
        (DecisionsAnswer, await inspector.decisions(0, 10)),
        (ExplanationAnswer, await inspector.explanation("default", "small")),
        (SimulationAnswer, await inspector.simulation(json.dumps(pod_body()).encode(), "")),
    ]
    for kind, answer in answers:
        msgspec.json.decode(answer, type=kind, strict=True)
        fields = {field.encode_name for field in msgspec.structs.fields(kind)}
        assert json.loads(answer).keys() == fields, kind


if __name__ == "__main__":
    PUBLISHED.write_bytes(schema())
