import pytest

from bayplan.logs.formats import redacted


@pytest.mark.parametrize("userinfo", ["me", "me:secret", ":secret", "me:se/cret", "me:s@cret", "m@e:se/c@ret", "me:"])
def test_users_and_passwords_of_urls_are_hidden_however_they_are_escaped(userinfo):
    text = f"cannot reach https://{userinfo}@cluster.example:6443/api after 3 tries"
    assert redacted(text) == "cannot reach https://[hidden]@cluster.example:6443/api after 3 tries"


@pytest.mark.parametrize(
    "text",
    [
        "GET https://cluster.example:6443/api/v1/pods",
        "https://cluster.example:6443/openid?user=me@example.com",
        "mail me@example.com about https://cluster.example/",
    ],
)
def test_addresses_without_a_user_stay(text):
    assert redacted(text) == text
