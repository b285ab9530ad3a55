import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import Taint, Toleration
from bayplan.api.tolerations import Tolerance, tolerates

GPU = Taint(key="gpu", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="gpu", operator="Equal", value="yes", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="", value="yes", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="Equal", value="no", effect="NoSchedule"), False),
        (Toleration(key="gpu", operator="Equal", value="yes", effect="NoExecute"), False),
        (Toleration(key="gpu", operator="Equal", value="yes"), True),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="gpu", operator="Exists", value="ignored"), True),
        (Toleration(key="cpu", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(value="yes"), True),
        (Toleration(), False),
        (Toleration(key="gpu", operator="exists"), False),
        (Toleration(key="gpu", operator="<script>"), False),
        (Toleration(key="gpu", operator="Exists", toleration_seconds=-(2**63)), True),
    ],
)
def test_a_toleration_matches_by_effect_key_and_value(toleration, expected):
    assert tolerates([toleration], GPU) is expected


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("value", ["1", "5", "9"])
def test_comparing_tolerations_match_nothing_unless_told_to(operator, value):
    taint = Taint(key="level", value="5", effect="NoSchedule")
    assert not tolerates([Toleration(key="level", operator=operator, value=value)], taint)


@pytest.mark.parametrize(
    ("operator", "value", "taint", "expected"),
    [
        ("Gt", "4", "5", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "5", False),
        ("Lt", "6", "5", True),
        ("Lt", "0", "-5", True),
        ("Gt", "9", "10", True),
        ("Gt", str(2**63 - 2), str(2**63 - 1), True),
        ("Lt", str(2**63 - 1), str(-(2**63)), True),
        # Neither is an integer of 64 bits in its usual form.
        ("Lt", str(2**63), "5", False),
        ("Gt", "04", "5", False),
        ("Gt", "+4", "5", False),
        ("Gt", "-0", "5", False),
        ("Gt", "4", "5.0", False),
        ("Gt", "4", "", False),
        ("Gt", "", "5", False),
        ("Gt", "4", "\u0665", False),
        ("Ge", "4", "5", False),
    ],
)
def test_tolerations_that_compare_match_by_number_when_told_to(operator, value, taint, expected):
    level = Taint(key="level", value=taint, effect="NoSchedule")
    toleration = Toleration(key="level", operator=operator, value=value)
    assert tolerates([toleration], level, compares=True) is expected
    assert Tolerance([toleration], compares=True).covers(level) is expected


def test_a_comparing_toleration_is_for_its_key_and_effect():
    for toleration in (Toleration(key="other", operator="Gt", value="1"), Toleration("level", "Gt", "1", "NoExecute")):
        assert not tolerates([toleration], Taint("level", "5", "NoSchedule"), compares=True)


def test_one_matching_toleration_is_enough():
    assert tolerates([Toleration(key="cpu", operator="Exists"), Toleration(key="gpu", operator="Exists")], GPU)
    assert not Tolerance(None).covers(GPU)
    assert not tolerates([], GPU)


def test_a_hard_taint_that_is_not_tolerated_repels():
    soft = Taint(key="soft", effect="PreferNoSchedule")
    hard = Taint(key="hard", effect="NoExecute")
    gpu = Tolerance([Toleration(key="gpu", operator="Exists")])
    assert Tolerance(None).repelled_by([soft, GPU])
    assert gpu.repelled_by([soft, GPU, hard])
    assert not gpu.repelled_by([soft, GPU])
    assert not Tolerance([Toleration(operator="Exists")]).repelled_by([soft, GPU, hard])
    assert not Tolerance([]).repelled_by([soft])
    assert not Tolerance(None).repelled_by(None)


words = st.sampled_from(["", "a", "1", "2"])
effects = st.sampled_from(["", "NoSchedule", "NoExecute"])
operators = st.sampled_from(["", "Equal", "Exists", "Gt", "Lt", "exists"])


@given(
    st.lists(st.builds(Toleration, key=words, operator=operators, value=words, effect=effects), max_size=3),
    st.builds(Taint, key=words, value=words, effect=effects),
    st.booleans(),
)
def test_very_many_tolerations_match_as_a_few_of_them_do(few, taint, compares):
    others = [Toleration(key=f"k{index}", operator="Exists") for index in range(20)]
    expected = tolerates(few, taint, compares=compares)
    assert Tolerance(few, compares=compares).covers(taint) is expected
    assert Tolerance([*others, *few], compares=compares).covers(taint) is expected
