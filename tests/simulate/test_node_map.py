import pytest

from bayplan.simulate.demo_frame import ASCII, BLOCKS, Cells, cells_for, glyphs_for, legend, node_map

NODES = [("gpu-0", 100), ("gpu-1", 7), ("cpu-0", 0), ("cpu-1", 50), ("cpu-2", 99)]


def drawn(nodes, cells, width, glyphs=ASCII):
    return [line.plain for line in node_map(nodes, cells, width=width, glyphs=glyphs)]


def test_each_pool_begins_a_line_and_each_node_says_its_percentage():
    assert drawn(NODES, Cells(4, 1), 16) == ["gpu  100   7", "cpu    .  50  99"]


def test_a_pool_goes_on_below_its_name_where_it_does_not_fit():
    assert drawn(NODES, Cells(4, 1), 12) == ["gpu  100   7", "cpu    .  50", "      99"]


@pytest.mark.parametrize(("glyphs", "lines"), [(ASCII, ["gpu 90", "cpu .59"]), (BLOCKS, ["gpu █▁", "cpu ·▅█"])])
def test_cells_of_one_column_are_a_level_each(glyphs, lines):
    assert drawn(NODES, Cells(1, 1), 16, glyphs) == lines


def test_a_cell_of_several_nodes_is_empty_only_if_all_of_them_are():
    nodes = [("a-0", 0), ("a-1", 1), ("a-2", 0), ("a-3", 0)]
    assert drawn(nodes, Cells(1, 2), 10) == ["a 0."]


@pytest.mark.parametrize(
    ("count", "lines", "cells"),
    [(30, 4, Cells(4, 1)), (30, 2, Cells(1, 1)), (300, 8, Cells(1, 1)), (300, 2, Cells(1, 3)), (5, 0, Cells(1, 5))],
)
def test_cells_are_as_telling_as_there_is_room_for(count, lines, cells):
    nodes = [(f"node-{number}", 10) for number in range(count)]
    assert cells_for(nodes, width=40 if count == 30 else 66, lines=lines) == cells


def test_the_legend_says_what_a_cell_stands_for():
    assert legend(Cells(4, 1), ASCII) == "Percent of what each node is fullest of; . is empty"
    assert legend(Cells(1, 8), BLOCKS) == "▁ to █: how full of what 8 nodes are fullest of; · is empty"


def test_blocks_are_drawn_where_the_encoding_has_them():
    assert [glyphs_for(each) for each in ("utf-8", "ascii", None, "nope")] == [BLOCKS, ASCII, ASCII, ASCII]
