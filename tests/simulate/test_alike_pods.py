"""Pods that are alike are told of once."""

from tests.builders import make_pod_info

from bayplan.simulate.tables import AlikePods


def test_pods_of_one_template_are_one_row_with_how_many_went_where():
    alike = AlikePods()
    template = make_pod_info("p", cpu="1")
    firsts = [alike.is_first(template, (f"default/p{n}", f"n{n % 2}", str(400 + n), "Fit 1")) for n in range(4)]
    assert firsts == [True, False, False, False]
    assert list(alike.rows()) == [("default/p0 and 3 more", "n0 (2) and n1 (2)", "400 to 403", "Fit 1")]


def test_a_pod_that_is_not_scored_has_no_part_in_the_scores_of_a_row():
    alike = AlikePods()
    template = make_pod_info("p", cpu="1")
    for number, score in enumerate(["", "664", "410", ""]):
        alike.is_first(template, (f"default/p{number}", "n0", score, "the only node that fits"))
    assert list(alike.rows()) == [("default/p0 and 3 more", "n0 (4)", "664 to 410", "the only node that fits")]


def test_a_pod_with_another_fate_is_a_row_of_its_own():
    alike = AlikePods()
    template = make_pod_info("p", cpu="1")
    assert alike.is_first(template, ("default/p0", "n0", "400", ""))
    assert alike.is_first(template, ("default/p1", "-", "", "0/1 nodes are available"))
    assert len(list(alike.rows())) == 2
