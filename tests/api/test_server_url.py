"""Addresses of servers as they are shown."""

import pytest

from bayplan.api.kubeconfig import without_userinfo


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://10.0.0.1:6443", "https://10.0.0.1:6443"),
        ("https://ann:secret@10.0.0.1:6443/a?b#c", "https://10.0.0.1:6443/a?b#c"),
        ("https://ann:se@cret@host", "https://host"),
        ("//ann@host", "//host"),
        ("https://host/ann@example", "https://host/ann@example"),
    ],
)
def test_user_and_password_are_left_out(url, shown):
    assert without_userinfo(url) == shown


@pytest.mark.parametrize("text", ["", " ", "//[", "a\tb", "\x1fhttp://host", "HTTP://host?"])
def test_what_is_no_url_stays_as_it_was_written(text):
    assert without_userinfo(text) == text
