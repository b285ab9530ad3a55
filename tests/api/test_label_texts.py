from hypothesis import example, given
from hypothesis import strategies as st
from tests.api.test_selectors import INVALID_KEYS, VALID_KEYS

from bayplan.api.selectors import is_label_key, is_label_value, label_key_problems, label_value_problems

# Little else than what keys are made of, so that many are nearly valid.
TEXTS = st.text("aA0-_./é\n", max_size=8) | st.sampled_from([*VALID_KEYS, *INVALID_KEYS]) | st.text(max_size=3)


@given(TEXTS)
@example("a" * 63 + "/" + "a" * 64)
@example("é" * 300)
def test_every_text_that_is_no_label_has_a_problem_that_is_told_and_no_other_has(text):
    assert (label_key_problems(text) == []) == is_label_key(text)
    assert (label_value_problems(text) == []) == is_label_value(text)
