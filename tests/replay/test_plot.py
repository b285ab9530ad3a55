from xml.etree import ElementTree as ET

from tests.replay.traces import make_trace, replayed

from bayplan.replay.plot import svg

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_has_a_line_for_each_configuration_and_one_for_the_bound():
    outcome = replayed(make_trace([(0.0, 100.0)]))
    picture = ET.fromstring(svg([("a<b.yaml", outcome), ("c.yaml", outcome)]))
    assert len(picture.findall(f"{SVG}polyline")) == 3
    texts = [each.text for each in picture.findall(f"{SVG}text")]
    assert {"a<b.yaml", "c.yaml", "no packing needs fewer"} <= set(texts)


def test_a_replay_without_nodes_is_drawn_as_well():
    assert ET.fromstring(svg([("a", replayed(make_trace([])))])).findall(f"{SVG}polyline")
