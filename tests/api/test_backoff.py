from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.backoff import Backoff


@given(aways=st.lists(st.booleans(), max_size=60))
def test_no_wait_is_longer_than_its_kind_allows_and_a_return_begins_anew(aways):
    backoff = Backoff()
    before = False
    for away in aways:
        delay = backoff.failed(away=away)
        assert 0.8 <= delay <= (4.0 if away else 30.0)
        if before and not away:
            assert delay <= 1.6
        before = away


def test_what_works_begins_anew():
    backoff = Backoff()
    for _ in range(40):
        backoff.failed(away=False)
    assert backoff.failed(away=False) == 30.0
    backoff.worked()
    assert backoff.failures == 0
    assert backoff.failed(away=True) <= 1.6
