from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.evaluation.clusters import NODE_NAMES, node_forms, profiles, similar_shapes
from tests.evaluation.worlds import World
from tests.examples import examples

HOSTS = st.sampled_from([*NODE_NAMES, "ghost"])
FORM = st.integers(0, 4)
SHAPE = st.integers(0, 2)
NUMBER = st.integers(0, 3)
UID = st.builds("{}-{}".format, SHAPE, NUMBER)
INCOMING = st.builds("incoming-{}".format, st.integers(1, 15))

FORMS = st.lists(node_forms(), min_size=5, max_size=5)
WANTED = similar_shapes()
PLACED = st.tuples(SHAPE, NUMBER, HOSTS, st.sampled_from([None, None, "2", "100m"]))

CHANGES = st.one_of(
    *[st.tuples(st.just("set_node"), st.sampled_from(NODE_NAMES), FORM)] * 4,
    *[st.tuples(st.just("set_pod"), PLACED)] * 2,
    *[st.tuples(st.just("place"), SHAPE)] * 3,
    st.tuples(st.just("remove_node"), HOSTS),
    st.tuples(st.just("finish_pod"), SHAPE, NUMBER, HOSTS),
    st.tuples(st.just("remove_pod"), UID),
    st.tuples(st.just("forget_pod"), INCOMING),
    st.tuples(st.just("confirm_pod"), INCOMING, st.one_of(st.none(), HOSTS)),
    st.tuples(st.just("set_nodes"), st.sampled_from([1, 5, 70]), FORM),
    st.tuples(st.just("remove_nodes"), st.sampled_from([1, 69])),
)
STEPS = st.tuples(CHANGES, st.sampled_from([0, 0, 0, 1, 2, None]), st.booleans())
"""A change, the shape to look at after it, if any, and whether to have that explained."""

RUN = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def _with_nodes(world: World, found: list[int]) -> World:
    for name, form in zip(NODE_NAMES, found, strict=False):
        world.set_node(name, form)
    return world


@settings(RUN, max_examples=examples(60))
@given(
    profile=profiles(),
    forms=FORMS,
    found=st.lists(FORM, max_size=6),
    wanted=WANTED,
    placed=st.lists(PLACED, max_size=8),
)
def test_a_fresh_evaluation_decides_as_the_plain_reference_does(profile, forms, found, wanted, placed):
    world = _with_nodes(World(profile, forms, wanted), found)
    for pod in placed:
        world.set_pod(pod)
    for shape in range(len(wanted)):
        world.look(shape, explain=True)


@settings(RUN, max_examples=examples(80))
@given(
    profile=profiles(),
    cluster=st.tuples(FORMS, st.lists(FORM, max_size=6)),
    wanted=WANTED,
    steps=st.lists(STEPS, min_size=3, max_size=40),
    limits=st.tuples(st.sampled_from([4096, 8, 1]), st.sampled_from([256, 1])),
)
def test_after_any_changes_a_kept_evaluation_decides_as_a_fresh_one_and_as_the_plain_reference(
    profile, cluster, wanted, steps, limits
):
    (forms, found), (log_keep, label_keys) = cluster, limits
    with patch("bayplan.cache.node_index._KEPT_LABEL_KEYS", label_keys):
        world = _with_nodes(World(profile, forms, wanted, log_keep=log_keep), found)
        for (change, *arguments), shape, explain in steps:
            getattr(world, change)(*arguments)
            if shape is not None:
                world.look(shape, explain=explain)
