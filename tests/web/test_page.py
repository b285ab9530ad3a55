"""The page in a real Chromium: what a person sees, reaches by keyboard, and is never harmed by."""

from queue import Queue
from types import SimpleNamespace

import pytest
from tests.web.answering import SaysEverywhere
from tests.web.clusters import node, pod

from bayplan.web.serve import opener

HOSTILE = [
    "<script>window.harmed=1</script>",
    "<img src=x onerror=window.harmed=1>",
    '"><svg onload=window.harmed=1>',
    "javascript:window.harmed=1//",
    "'-window.harmed=1-'",
    "</title></style></textarea><script>window.harmed=1</script>",
    "<iframe srcdoc='<script>parent.harmed=1</script>'></iframe>",
    "../../x y?a=b#c",
    "{{constructor.constructor('window.harmed=1')()}}",
    "\u202egnp.exe\u0000\u001b[31m\n<b>",
    "__proto__",
    "x" * 1000,
]
CONTRASTS = """() => {
  const linear = (c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = colour.match(/\\d+/g).map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const card = light(getComputedStyle(document.querySelector(".tile")).backgroundColor);
  const texts = document.querySelectorAll(".figure, .note, .now, h2, button.link, .good, .bad");
  return [...texts].filter((each) => each.textContent.trim() && each.closest(".tile, .card")).map((each) => {
    const text = light(getComputedStyle(each).color);
    return (Math.max(card, text) + 0.05) / (Math.min(card, text) + 0.05);
  });
}"""
"""Contrast of each text with the card it stands on, as WCAG has it."""
LIGHT = """(name) => {
  const state = document.getElementById("state");
  state.className = name;
  return getComputedStyle(state, "::before").backgroundColor;
}"""


def test_a_glance_tells_what_is_full_what_could_be_emptied_and_why_pods_wait(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    assert page.inner_text("#in-use") == "53 of 60"
    assert page.inner_text("#in-use-note") == "run a pod that could run elsewhere; by the sum of requests 35 would do"
    assert page.inner_text("#emptiable") == "11 nodes"
    assert page.inner_text("#waiting") == "10"
    reasons = [each.inner_text() for each in page.locator("#why h3").all()]
    assert reasons == [
        "4 pods: Insufficient cpu",
        "4 pods: didn't match Pod's node affinity/selector",
        "2 pods: Insufficient nvidia.com/gpu",
    ]


def test_a_gang_that_waits_is_one_line_with_how_many_of_it_wait(tab, page_of):
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": 4}}
    objects = [node("n1", 8, "32Gi"), group | {"metadata": {"name": "train", "namespace": "shop"}}]
    objects += [pod(f"train-{number}", "5", "1Gi") for number in range(4)]
    for each in objects[2:]:
        each["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "train"
    page = tab(page_of([*objects, pod("single", "9", "1Gi")])).page
    page.wait_for_selector("#why .pods")
    lines = {each.inner_text() for each in page.locator("#why .pods li").all()}
    told = " of gang train, of which 4 pods wait"
    assert lines == {f"shop/train-0{told}", f"shop/train-1{told}", f"shop/train-2{told}", "shop/single"}
    assert page.locator("#why h3").first.inner_text().startswith("2 pods: ")
    page.locator("#why").get_by_role("button", name="shop/train-0", exact=True).click()
    page.wait_for_selector("#detail .sentence")
    waits = "It waits with pod group shop/train, of which 1 pod fits and 4 must; shop/train-1 does not"
    assert page.inner_text("#detail .sentence").startswith(waits)
    text = page.inner_text("#detail")
    assert "shop/train-1: 0 of 1 node fits" in text
    assert "By itself, on the nodes as they are now" in text


def test_pods_that_wait_for_the_same_are_one_reason_though_their_messages_name_them(tab, page_of):
    objects = [node("n1", 8, "32Gi"), *(pod(f"held-{number}", "1", "1Gi") for number in range(2))]
    for each in objects[1:]:
        each["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "none"}]
    page = tab(page_of(objects)).page
    page.wait_for_selector("#why .pods")
    assert page.locator("#why h3").all_inner_texts() == ["2 pods: held back by a gate or with its pod group"]


def test_what_is_left_of_devices_is_told_where_there_are_some(tab, page_of, mixed):
    parts = [
        {"name": name, "consumesCounters": [{"counterSet": "gpu", "counters": {"eighths": {"value": value}}}]}
        for name, value in (("half", "4"), ("rest", "4"))
    ]
    pool = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2},
    }
    counters = [{"name": "gpu", "counters": {"eighths": {"value": "8"}}}]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "half"}
    objects = [
        {"kind": "ResourceSlice", "metadata": {"name": "parts"}, "spec": {**pool, "devices": parts}},
        {"kind": "ResourceSlice", "metadata": {"name": "counters"}, "spec": {**pool, "sharedCounters": counters}},
        {
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "shop", "uid": "c", "resourceVersion": "1"},
            "spec": {"devices": {"requests": [request]}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        },
    ]
    served = page_of([node("n1", 8, "32Gi"), *({"apiVersion": "resource.k8s.io/v1", **each} for each in objects)])
    page = tab(served).page
    page.wait_for_selector("#state.done")
    assert page.inner_text("#requested-note") == "0.5 devices stranded: left of those taken in part"
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    assert page.inner_text("#requested-note") == ""


def test_a_pod_that_waits_is_explained_with_what_would_help(tab, mixed):
    page = tab(mixed).page
    page.get_by_role("button", name="batch/report-8", exact=True).first.click()
    page.wait_for_selector("#detail .help")
    text = page.inner_text("#detail")
    assert "0 of 60 nodes fit" in text
    assert "NodeResourcesFit: cpu, asked 64000m, most free 32000m on" in text
    assert "32000m less of cpu, on" in text


def test_a_node_shows_its_pods_and_those_that_would_come(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.locator("#decisions td:nth-child(3) button").first.click()
    page.wait_for_selector("#detail table")
    assert "would come" in page.inner_text("#detail")
    page.locator("#detail td button").last.click()
    page.wait_for_selector("#detail .sentence")
    assert "would be put on" in page.inner_text("#detail .sentence")


def test_the_map_is_walked_by_keyboard_and_focus_comes_back(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.focus("#map")
    first = page.inner_text("#map-now")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    second = page.inner_text("#map-now")
    assert first != second
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail[open] table")
    assert page.inner_text("#detail-title") == second.split(":")[0]
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "map"
    page.keyboard.press("End")
    assert "no pods" in page.inner_text("#map-now")
    page.keyboard.press("Home")
    assert page.inner_text("#map-now") == first


def test_the_table_says_what_the_map_shows(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.get_by_text("The same as a table").click()
    rows = page.locator("#nodes-table tbody tr")
    # It is made when the browser tells of the opening, which is after the click.
    rows.first.wait_for()
    assert rows.count() == 25
    page.focus("#map")
    told = page.inner_text("#map-now")
    name, full = rows.first.locator("th, td").nth(0).inner_text(), rows.first.locator("th, td").nth(1).inner_text()
    assert told.startswith(f"{name}: {full} of ")
    page.get_by_role("button", name="After").click()
    page.get_by_role("button", name="After").click()
    assert "51 to 60 of 60 nodes" in page.inner_text("#nodes-table")


def test_nodes_are_found_by_name_and_coloured_by_one_resource(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    page.get_by_label("Find").fill("gpu-")
    page.wait_for_selector("#map[data-drawn='12']")
    page.get_by_label("Fullness by").select_option("nvidia.com/gpu")
    page.focus("#map")
    assert "of nvidia.com/gpu" in page.inner_text("#map-now")
    page.get_by_label("Order").select_option("by name")
    page.keyboard.press("Home")
    assert page.inner_text("#map-now").startswith("gpu-0003: ")


def test_whoever_hears_the_page_is_told_what_each_part_is(tab, mixed):
    page = tab(mixed).page
    page.wait_for_selector("#state.done")
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, select, input, canvas, [tabindex='0']")].filter((each) =>
           !(each.labels?.length || each.getAttribute("aria-label") || each.getAttribute("aria-labelledby") ||
             each.textContent.trim() || each.closest("[role=img]")?.getAttribute("aria-label")))
             .map((each) => each.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("[aria-live], [role=status]").count() >= 2
    assert page.locator("h1").count() == 1
    assert page.get_attribute("html", "lang") == "en"


def test_the_page_asks_no_host_but_its_own(tab, mixed):
    opened = tab(mixed)
    opened.page.wait_for_selector("#state.done")
    assert opened.hosts == {mixed.split("/")[2]}


def test_nothing_is_wider_than_the_window(tab, mixed):
    page = tab(mixed, viewport={"width": 390, "height": 844}).page
    page.wait_for_selector("#state.done")
    page.locator("#why button").first.click()
    page.wait_for_selector("#detail .help")
    for width in (390, 1920, 1280, 800):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function(f"window.innerWidth === {width}")
        # What is drawn to size follows the window a frame later.
        page.wait_for_function(f"document.scrollingElement.scrollWidth <= {width}")
        page.wait_for_function(f"document.getElementById('detail').scrollWidth <= {width}")


def test_dark_and_light_are_told_apart_and_legible(tab, mixed):
    page = tab(mixed, color_scheme="dark").page
    page.wait_for_selector("#state.done")
    dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert min(page.evaluate(CONTRASTS)) >= 4.5
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != dark
    assert min(page.evaluate(CONTRASTS)) >= 4.5


def test_nothing_moves_for_whoever_asked_for_stillness(tab, mixed):
    page = tab(mixed, reduced_motion="reduce").page
    page.wait_for_selector("#state.done")
    assert page.evaluate("getComputedStyle(document.querySelector('.bar > span')).transitionDuration") == "0s"


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_cluster_calls_things_is_shown_and_never_acted_on(tab, served, text):
    source = SaysEverywhere(text)
    server = served(source, {"mode": "live", "title": text, "skipped": 1, "configurations": [text, f"2{text}"]})
    server.refresh(1.0)
    server.show("comparison", source.side_by_side())
    page = tab(server.address).page
    page.wait_for_selector("#decisions table")
    page.get_by_text("The same as a table").click()
    page.focus("#map")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail .chips")
    page.locator("#detail td button").first.click()
    page.wait_for_selector("#detail .help")
    page.keyboard.press("Escape")
    page.get_by_label("A pod or a workload").fill("{kind: Pod}")
    page.get_by_role("button", name="Ask").click()
    page.wait_for_selector("#placing-answer .asked >> nth=1")
    page.locator("#placing-answer summary").nth(1).click()
    page.wait_for_selector("#comparison tbody tr")
    assert page.evaluate("window.harmed") is None
    assert page.locator("main img, main iframe, main script, dialog img, dialog iframe, dialog script").count() == 0
    assert page.locator("main svg, dialog svg, dialog b, main b").count() == 0
    assert page.evaluate("document.title") == "bayplan"
    assert "\u202e" not in page.inner_text("body")


def test_what_changes_is_shown_without_loading_the_page_again(tab, served):
    source = SaysEverywhere("x", nodes_used=3)
    server = served(source, {"mode": "live", "title": "x", "skipped": 0})
    server.refresh(1.0)
    page = tab(server.address).page
    page.wait_for_selector("#in-use:has-text('3 of')")
    page.evaluate("window.same = true")
    page.focus("#map")
    source.nodes_used, source.requested = 4, 900
    server.refresh(2.0)
    page.wait_for_selector("#in-use:has-text('4 of')")
    page.wait_for_selector("#map-now:has-text('x: 90 % of cpu')")
    assert page.evaluate("window.same")


def test_a_page_that_has_heard_nothing_yet_has_no_green_light(chromium, mixed):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto("/".join([*mixed.split("/")[:3], ""]))
    assert (page.inner_text("#state"), page.get_attribute("#state", "class")) == ("Connecting", None)
    nothing, done, running = (page.evaluate(LIGHT, name) for name in ("", "done", "running"))
    assert nothing == done != running
    context.close()


def test_a_page_whose_server_has_ended_says_so(tab, served):
    server = served(SaysEverywhere("x"), {"mode": "live", "title": "x", "skipped": 0})
    server.refresh(1.0)
    opened = tab(server.address)
    opened.page.wait_for_selector("#decisions table")
    server.end_streams()
    opened.page.wait_for_selector("#state.bad")
    assert opened.page.inner_text("#state") == "bayplan web does not answer"
    # The browser says itself that it could not connect.
    opened.faults.clear()


def test_a_reloaded_page_and_another_tab_are_let_in_and_no_tab_without_the_secret_is(tab, served):
    server = served(SaysEverywhere("x"), {"mode": "live", "title": "x", "skipped": 0})
    server.refresh(1.0)
    first = tab(server.address)
    assert "token" not in first.page.url
    first.page.reload()
    first.page.wait_for_selector("#map[data-drawn]")
    second = first.context.new_page()
    second.goto(server.address)
    second.wait_for_selector("#map[data-drawn]")
    second.evaluate("localStorage.clear()")
    second.reload()
    second.wait_for_selector("#state.bad")
    assert second.inner_text("#state") == "open the address that bayplan web printed; it is good for one browser"


def test_the_file_that_a_browser_is_started_with_leads_it_to_the_page(chromium, served, monkeypatch):
    server = served(SaysEverywhere("x"), {"mode": "live", "title": "x", "skipped": 0})
    server.refresh(1.0)
    started = Queue()
    monkeypatch.setattr("bayplan.web.serve.webbrowser.get", lambda: SimpleNamespace(open=started.put))
    with chromium.new_context() as context, opener("bayplan web", browser=True) as opened:
        opened(server.address)
        file = started.get(timeout=60)
        assert file.startswith("file://")
        page = context.new_page()
        page.goto(file)
        page.wait_for_selector("#map[data-drawn]", timeout=180_000)
        assert page.url == server.address.partition("?")[0]
