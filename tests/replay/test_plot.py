import struct
import sys
from xml.etree import ElementTree as ET

import pytest
from tests.replay.traces import make_trace, replayed

from bayplan.config.errors import InputError
from bayplan.replay.plot import check_drawable, draw, svg

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_has_a_line_for_each_configuration_and_one_for_the_bound():
    outcome = replayed(make_trace([(0.0, 100.0)]))
    picture = ET.fromstring(svg([("a<b.yaml", outcome), ("c.yaml", outcome)]))
    assert len(picture.findall(f"{SVG}polyline")) == 3
    texts = [each.text for each in picture.findall(f"{SVG}text")]
    assert {"a<b.yaml", "c.yaml", "no packing needs fewer"} <= set(texts)


def test_a_replay_without_nodes_is_drawn_as_well():
    assert ET.fromstring(svg([("a", replayed(make_trace([])))])).findall(f"{SVG}polyline")


@pytest.fixture
def named():
    return [("a<b.yaml", replayed(make_trace([(0.0, 100.0)])))]


def test_html_is_a_page_with_the_picture_in_it(tmp_path, named):
    draw(tmp_path / "nodes.html", named)
    page = (tmp_path / "nodes.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert svg(named) in page


def test_png_is_the_picture_in_pixels_two_for_each_unit(tmp_path, named):
    check_drawable(tmp_path / "nodes.PNG")
    draw(tmp_path / "nodes.PNG", named)
    data = (tmp_path / "nodes.PNG").read_bytes()
    _, _, width, height = ET.fromstring(svg(named)).get("viewBox").split()
    assert data.startswith(b"\x89PNG\r\n")
    assert struct.unpack(">II", data[16:24]) == (2 * int(width), 2 * int(height))


def test_png_without_its_package_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(InputError, match=r"--plot: PNG needs the package resvg-py: pip install 'bayplan\[png\]'"):
        check_drawable(tmp_path / "nodes.png")
    check_drawable(tmp_path / "nodes.svg")


def test_any_other_ending_is_svg(tmp_path, named):
    draw(tmp_path / "nodes", named)
    assert (tmp_path / "nodes").read_text() == svg(named)
