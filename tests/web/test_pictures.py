"""The pictures that the documents have of the page."""

import pytest
from tests.web.pictures import MOST_BYTES


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("web", {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}),
        ("web-dark", {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"}),
        ("web-phone", {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"}),
    ],
)
def test_the_pictures_of_the_documents_are_made_of_it(tab, mixed, pictures, name, settings):
    page = tab(mixed, **settings).page
    page.wait_for_selector("#state.done")
    page.wait_for_selector("#history canvas")
    assert 20_000 < pictures.take(page, name) < MOST_BYTES


def test_the_picture_of_a_pods_explanation_is_made_of_it(tab, mixed, pictures):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.get_by_role("button", name="batch/report-8", exact=True).first.click()
    page.wait_for_selector("#detail .help")
    assert 20_000 < pictures.take(page, "web-pod") < MOST_BYTES
