import json
from pathlib import Path

import msgspec

from bayplan.explain.explanation import Explanation

SCHEMA = Path(__file__).parents[2] / "docs/explain-schema.json"


def test_the_documented_schema_is_that_of_explanations():
    assert json.loads(SCHEMA.read_text()) == json.loads(json.dumps(msgspec.json.schema(Explanation)))
