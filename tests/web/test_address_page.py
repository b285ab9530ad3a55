"""The page's address in a real Chromium: a node, a pod and a view have one, and the back button leads back."""

from tests.web.clusters import node, pod


def link(page):
    return page.evaluate("location.hash")


def opened(page, title):
    page.wait_for_selector(f"#detail[open] #detail-title:has-text('{title}')")
    page.wait_for_selector("#detail-body h3")


def closed(page):
    page.wait_for_selector("#detail", state="hidden")


def test_a_pod_that_is_opened_has_an_address_which_shows_it_again(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.get_by_role("button", name="batch/report-8", exact=True).first.click()
    opened(page, "batch/report-8")
    assert link(page) == "#pod=batch/report-8"
    page.reload()
    opened(page, "batch/report-8")
    assert "0 of 60 nodes fit" in page.inner_text("#detail")


def test_a_node_that_is_opened_has_an_address_which_shows_it_in_another_tab(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.focus("#map")
    page.keyboard.press("Enter")
    name = page.inner_text("#detail-title")
    assert link(page) == f"#node={name}"
    opened(tab(mixed, f"#node={name}").page, name)


def test_the_link_survives_the_address_that_brings_the_token(tab, page_of):
    page = tab(page_of([node("a", 8, "8Gi"), pod("web", "2", "1Gi", node_name="a")]), "#pod=shop/web").page
    opened(page, "shop/web")
    assert page.url.endswith("/#pod=shop/web")


def test_back_leads_to_what_was_open_before_and_forward_again(tab, mixed):
    page = tab(mixed, "#pod=batch/report-8").page
    opened(page, "batch/report-8")
    page.keyboard.press("Escape")
    closed(page)
    assert link(page) == ""
    page.get_by_role("button", name="batch/report-18", exact=True).first.click()
    opened(page, "batch/report-18")
    page.go_back()
    closed(page)
    page.go_back()
    opened(page, "batch/report-8")
    page.go_forward()
    closed(page)
    page.go_forward()
    opened(page, "batch/report-18")


def test_a_view_has_an_address_which_shows_it_again(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.get_by_label("Fullness by").select_option("nvidia.com/gpu")
    page.get_by_label("Order").select_option("by name")
    page.get_by_label("Find").fill("gpu-")
    assert link(page) == "#measure=nvidia.com/gpu&order=name&find=gpu-"
    page.reload()
    page.wait_for_selector("#map[data-drawn='12']")
    page.focus("#map")
    assert page.inner_text("#map-now").startswith("gpu-0003: ")
    assert "of nvidia.com/gpu" in page.inner_text("#map-now")
    page.keyboard.press("Enter")
    assert link(page) == "#node=gpu-0003&measure=nvidia.com/gpu&order=name&find=gpu-"
    page.keyboard.press("Escape")
    closed(page)
    page.get_by_label("Order").select_option("fullest first")
    assert link(page) == "#measure=nvidia.com/gpu&find=gpu-"


def test_what_an_address_says_and_the_page_does_not_know_is_the_usual(tab, mixed):
    page = tab(mixed, "#measure=bananas&order=sideways&other=1").page
    page.wait_for_selector("#state.done")
    assert page.input_value("#measure") == "dominant"
    assert page.input_value("#order") == "full"
    assert not page.is_visible("#detail")


def test_an_address_of_a_pod_that_is_not_there_says_so(tab, mixed):
    made = tab(mixed, "#pod=shop/gone")
    made.page.wait_for_selector("#detail-body [role=alert]")
    assert "shop/gone" in made.page.inner_text("#detail-body")
    # The browser notes answers that refuse, which is no fault of the page.
    made.faults = [each for each in made.faults if "Failed to load resource" not in each]


def test_skipping_to_the_map_leaves_the_view_alone(tab, mixed):
    page = tab(mixed, "#find=gpu-").page
    page.wait_for_selector("#map[data-drawn='12']")
    page.focus(".skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "map-card"
    assert link(page) == "#find=gpu-"
