"""The page in a real Chromium: configurations side by side, and where a pasted pod would go."""

import json

import pytest
from tests.web.answering import SaysEverywhere
from tests.web.clusters import pod
from tests.web.pictures import MOST_BYTES


def ask(page, text, count="max"):
    page.get_by_label("A pod or a workload").fill(text)
    page.get_by_label("How many of it fit").fill(count)
    page.get_by_role("button", name="Ask").click()


def asked(page, *objects, count="max"):
    """Paste the objects and wait for the answer."""
    ask(page, "\n---\n".join(json.dumps(each) for each in objects), count)
    page.wait_for_selector("#placing-answer .asked")
    return page.inner_text("#placing-answer")


def test_a_pasted_pod_is_told_its_node_with_scores_and_how_many_of_it_fit(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    text = asked(page, pod("new", "1", "1Gi"))
    assert "It would go to " in text
    assert "NodeResourcesFit" in text
    assert " fit, on " in text
    assert page.inner_text("#placing-state") == "It would find a node."
    assert page.evaluate("document.activeElement.id") == "placing-answer"


def test_a_pasted_pod_that_fits_nowhere_is_told_why_with_numbers(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    text = asked(page, pod("new", "64", "1Gi"), count="")
    assert "cpu, asked 64000m, most free" in text
    assert page.inner_text("#placing-state") == "It would find no node."


def test_asking_changes_nothing(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    before = page.inner_text("#in-use-note")
    first = asked(page, pod("new", "1", "1Gi"))
    assert asked(page, pod("new", "1", "1Gi")) == first
    assert page.inner_text("#in-use-note") == before


@pytest.mark.parametrize(
    ("question", "field", "error"),
    [
        (("", "max"), "placing-text", "Paste a pod or a workload first."),
        (("{", "max"), "placing-text", "pasted text"),
        (("kind: Pod", "many"), "placing-count", "How many: give a number from 0 to 9999999, max, or nothing."),
        (("#" * (513 * 1024), ""), "placing-text", "it is larger than the 512 KiB of one question"),
    ],
    ids=["nothing", "no object", "no number", "too much"],
)
def test_what_cannot_be_asked_is_told_in_a_line_and_focus_goes_to_the_field(tab, mixed, question, field, error):
    opened = tab(mixed)
    page = opened.page
    page.wait_for_selector("#state.done")
    ask(page, *question)
    page.wait_for_selector("#placing-error:not(:empty)")
    assert page.inner_text("#placing-error").startswith(error)
    assert page.evaluate("document.activeElement.id") == field
    assert page.get_attribute(f"#{field}", "aria-invalid") == "true"
    # The browser notes answers that refuse, which is no fault of the page.
    opened.faults = [each for each in opened.faults if "Failed to load resource" not in each]


def test_a_pod_is_asked_about_by_keyboard_alone(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.focus("#placing-text")
    page.keyboard.insert_text(json.dumps(pod("new", "1", "1Gi")))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "placing-count"
    page.keyboard.press("Enter")
    page.wait_for_selector("#placing-answer .asked")


def test_two_configurations_stand_side_by_side(tab, two_configurations):
    page = tab(two_configurations).page
    page.wait_for_selector("#comparison h3")
    rows = {
        row.locator("th").inner_text(): [cell.inner_text() for cell in row.locator("td").all()]
        for row in page.locator("#comparison table").first.locator("tbody tr").all()
    }
    packed, spread = map(int, rows["Nodes in use"])
    assert packed < spread
    assert int(rows["No packing needs fewer than"][0]) <= packed
    assert {"Pods placed", "Pods evicted", "cpu stranded", "cpu free on one node", "memory stranded"} <= rows.keys()
    assert "not on the same node everywhere" in page.inner_text("#comparison")
    assert "A examples/most-allocated.yaml" in page.inner_text("#comparison .letters")


def test_with_one_configuration_the_page_says_how_to_compare(tab, mixed, served):
    assert "--config A --config B" in tab(mixed).page.inner_text("#comparison")
    server = served(SaysEverywhere("x"), {"mode": "live", "title": "x", "skipped": 0})
    server.refresh(1.0)
    assert "bayplan snapshot -o cluster.json.gz &&" in tab(server.address).page.inner_text("#comparison")


def test_nothing_of_either_is_wider_than_the_window(tab, two_configurations):
    page = tab(two_configurations, viewport={"width": 390, "height": 844}).page
    page.wait_for_selector("#comparison h3")
    asked(page, pod("new", "64", "1Gi"))
    for width in (390, 1280, 800):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function(f"window.innerWidth === {width}")
        # What is drawn to size follows the window a frame later.
        page.wait_for_function(f"document.scrollingElement.scrollWidth <= {width}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pictures_of_the_documents_are_made_of_it(tab, two_configurations, pictures, scheme):
    page = tab(two_configurations, color_scheme=scheme).page
    page.wait_for_selector("#comparison h3")
    asked(page, pod("new", "1", "1Gi"))
    ending = "" if scheme == "light" else "-dark"
    for card in ("comparison", "placing"):
        assert 8_000 < pictures.take(page.locator(f".{card}-card"), f"web-{card}{ending}") < MOST_BYTES


def test_the_pictures_on_a_phones_width_are_made_of_it(tab, two_configurations, pictures):
    page = tab(two_configurations, viewport={"width": 390, "height": 844}).page
    page.wait_for_selector("#comparison h3")
    asked(page, pod("new", "1", "1Gi"))
    for card in ("comparison", "placing"):
        assert 8_000 < pictures.take(page.locator(f".{card}-card"), f"web-{card}-phone") < MOST_BYTES
