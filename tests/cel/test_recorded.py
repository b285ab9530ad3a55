"""Kubernetes' own answers, recorded: `python -m tests.cel.record --seed 1 --out tests/cel/data/answers.jsonl.gz`."""

from collections import Counter

from tests.cel.recording import DATA, expressions_by_hand, read_answers
from tests.cel.verdict import difference

ANSWERS = read_answers(DATA / "answers.jsonl.gz")


def test_bayplan_answers_as_kubernetes_does():
    assert [text for text in map(difference, ANSWERS) if text] == []


def test_what_is_recorded_has_all_kinds_of_answers():
    kinds = Counter(next(iter(each.answer)) for each in ANSWERS)
    assert len(ANSWERS) > 3000
    assert min(kinds[kind] for kind in ("value", "error", "compile")) > 100
    assert len({each.answer["error"] for each in ANSWERS if "error" in each.answer}) > 60


def test_each_function_by_hand_is_among_them():
    assert {each.expression for each in ANSWERS} > set(expressions_by_hand()[:100])
