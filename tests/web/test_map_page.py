"""The map of nodes in a real Chromium: what names are cut to, how large few nodes are, and which nodes are in use."""

from dataclasses import dataclass, field

import msgspec
import pytest
from tests.web.answering import SaysEverywhere
from tests.web.clusters import node, pod

from bayplan.live.answers import NodesAnswer

TEXTS = """
  window.drawn = new Set();
  const fill = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
    if (this.canvas.id === "map") window.drawn.add(text);
    return fill.call(this, text, ...where);
  };
"""
"""Notes what the page writes on the map."""
EKS = [f"ip-10-0-{number % 3}-{number}.eu-west-1.compute.internal" for number in range(100, 160)]


@dataclass
class Named(SaysEverywhere):
    """A cluster of nodes of these names, each half full."""

    names: list[str] = field(default_factory=list)

    async def nodes(self):
        every = len(self.names)
        pods, marks = [1] * every, [False] * every
        return msgspec.json.encode(
            NodesAnswer("", ["cpu"], self.names, pods, marks, marks, {"cpu": [500] * every}, {"cpu": [1000] * every})
        )


@pytest.fixture
def page_with(tab, served):
    def opened(names, **settings):
        server = served(Named("x", names=names), {"mode": "live", "title": "x", "skipped": 0})
        server.refresh(1.0)
        page = tab(server.address, before=TEXTS, **settings).page
        page.wait_for_selector(f"#map[data-drawn='{len(names)}']", state="attached")
        return page

    return opened


def labels(page):
    return {text for text in page.evaluate("[...window.drawn]") if "%" not in text}


def test_names_that_begin_and_end_alike_are_cut_to_what_differs(page_with):
    assert labels(page_with(EKS)) == {f"…{number % 3}-{number}…" for number in range(100, 160)}


def test_names_that_fit_are_left_whole(page_with):
    names = [f"node-{number}" for number in range(30)]
    assert labels(page_with(names)) == set(names)


def test_a_node_of_another_kind_does_not_keep_the_others_from_being_cut(page_with):
    assert labels(page_with([*EKS, "control-plane-of-this-cluster"])) > {"…0-102…", "…1-100…"}


def test_nodes_of_two_pools_have_names_that_tell_them_apart(page_with):
    pools = ("prod-default-pool-8b3f9a2c", "prod-gpu-pool-77aa9a2c")
    names = [f"gke-{pool}-{number:02}k{number % 7}" for pool in pools for number in range(20)]
    found = labels(page_with(names))
    assert len(found) == 40
    assert sum(text.startswith("…gpu") for text in found) == 20


def test_a_name_that_is_too_long_for_its_cell_loses_its_middle(page_with):
    (label,) = labels(page_with(["first" + "x" * 200 + "last"]))
    assert label.startswith("first")
    assert label.endswith("last")
    assert "x…x" in label


def test_what_follows_the_last_separator_is_cut_last(page_with):
    names = [f"{pool}-{number:04}" for pool in ("general-purpose", "memory-optimized") for number in range(40)]
    found = labels(page_with(names, viewport={"width": 390, "height": 844}))
    assert {text[-4:] for text in found} == {f"{number:04}" for number in range(40)}
    assert len(found) == 80


def test_the_whole_name_is_told_where_the_mouse_is(page_with):
    page = page_with(EKS)
    page.get_by_label("Order").select_option("by name")
    page.hover("#map", position={"x": 40, "y": 15})
    assert page.get_attribute("#map", "title") == EKS[0]
    assert page.inner_text("#map-now").startswith(f"{EKS[0]}: 50 % of cpu")
    page.hover("#find")
    assert page.get_attribute("#map", "title") == ""


@pytest.mark.parametrize(("width", "count", "rows"), [(390, 4, 1), (390, 5, 2), (1280, 1, 1), (1280, 5, 1)])
def test_a_few_nodes_have_no_more_room_than_they_fill(page_with, width, count, rows):
    page = page_with(EKS[:count], viewport={"width": width, "height": 844})
    box, canvas = page.locator(".canvas-box").bounding_box(), page.locator("#map").bounding_box()
    assert box["height"] == canvas["height"] <= rows * 60
    page.mouse.click(canvas["x"] + 20, canvas["y"] + 20)
    page.wait_for_selector("#detail[open] table")
    assert page.inner_text("#detail-title") == EKS[0]


def test_one_node_is_not_as_wide_as_the_page(page_with):
    page = page_with(EKS[:1])
    page.hover("#map", position={"x": 400, "y": 20})
    assert page.get_attribute("#map", "title") == ""
    assert labels(page) == {EKS[0]}


def test_where_there_is_no_node_to_show_it_is_said(page_with):
    assert page_with([]).inner_text("#map-now") == "The cluster has no nodes."
    page = page_with(EKS[:3])
    page.get_by_label("Find").fill("gpu")
    page.wait_for_selector("#map[data-drawn='0']", state="attached")
    assert page.inner_text("#map-now") == "No node of that name."


def test_the_packing_is_no_empty_chart_while_there_is_one_point(page_with):
    page = page_with(EKS[:3])
    page.wait_for_selector("#history-now:has-text('in use')")
    assert not page.is_visible("#history")


def test_a_node_is_in_use_when_a_pod_runs_there_that_could_run_elsewhere(tab, page_of):
    nodes = [node(name, 8, "8Gi") for name in ("a", "b", "c")]
    agents = [pod(f"agent-{name}", "1", "1Gi", node_name=name) for name in ("a", "b", "c")]
    for agent in agents:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-agent", "controller": True}
        agent["metadata"]["ownerReferences"] = [owner]
    page = tab(page_of([*nodes, *agents, pod("web", "2", "1Gi", node_name="b")])).page
    page.wait_for_selector("#state.done")
    assert page.inner_text("#in-use") == "1 of 3"
    assert page.inner_text("#in-use-note") == "run a pod that could run elsewhere; by the sum of requests 1 would do"
    assert page.inner_text("#emptiable") == "0 nodes"
    assert page.inner_text("#history-now") == "1 node in use; by the sum of requests 1 would do."
    page.focus("#map")
    assert page.inner_text("#map-now") == "b: 37 % of cpu, 2 pods"
    page.keyboard.press("End")
    assert page.inner_text("#map-now") == "c: 12 % of cpu, 1 pod"
