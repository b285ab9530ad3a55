import pytest

from bayplan.api.watch_source import VersionHistory


@pytest.mark.parametrize(
    ("versions", "answers"),
    [
        (["10", "10", "11", "9", "10"], [False, False, False, True, False]),
        (["99", "100", "99"], [False, False, True]),
        (["b", "a", "b"], [False, False, False]),
        (["10", "a", "9"], [False, False, False]),
    ],
)
def test_a_list_went_back_if_a_later_version_was_seen(versions, answers):
    history = VersionHistory()
    assert [history.went_back(version) for version in versions] == answers


def test_what_was_seen_of_a_watch_counts_until_it_is_forgotten():
    history = VersionHistory()
    history.seen("20")
    history.seen("")
    assert history.went_back("19")
    history.seen("30")
    history.forget()
    assert not history.went_back("5")
