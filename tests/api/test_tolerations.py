import pytest

from bayplan.api.objects import Taint, Toleration
from bayplan.api.tolerations import find_untolerated_taint, tolerates

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
def test_comparing_tolerations_match_nothing(operator, value):
    taint = Taint(key="level", value="5", effect="NoSchedule")
    assert not tolerates([Toleration(key="level", operator=operator, value=value)], taint)


def test_one_matching_toleration_is_enough():
    assert tolerates([Toleration(key="cpu", operator="Exists"), Toleration(key="gpu", operator="Exists")], GPU)
    assert not tolerates(None, GPU)
    assert not tolerates([], GPU)


def test_the_first_untolerated_taint_of_the_wanted_effects_is_found():
    soft = Taint(key="soft", effect="PreferNoSchedule")
    hard = Taint(key="hard", effect="NoExecute")
    effects = ("NoSchedule", "NoExecute")
    assert find_untolerated_taint([soft, GPU, hard], None, effects) is GPU
    assert find_untolerated_taint([soft, GPU, hard], [Toleration(key="gpu", operator="Exists")], effects) is hard
    assert find_untolerated_taint([soft, GPU, hard], [Toleration(operator="Exists")], effects) is None
    assert find_untolerated_taint([soft], [], effects) is None
    assert find_untolerated_taint(None, None, effects) is None
