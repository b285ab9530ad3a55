from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import make_node
from tests.framework.clusters import NODE_NAMES, nodes, profiles, shapes
from tests.framework.worlds import World

SHAPES = 3
HOSTS = st.sampled_from([*NODE_NAMES, "ghost"])
SHAPE = st.integers(0, SHAPES - 1)
NUMBER = st.integers(0, 3)
ACTUAL_CPU = st.sampled_from([None, None, "2", "100m"])
UID = st.builds(lambda shape, number: f"{shape}-{number}", SHAPE, NUMBER)
INCOMING = st.integers(1, 10).map(lambda number: f"incoming-{number}")

CHANGES = st.one_of(
    st.tuples(st.just("set_node"), nodes()),
    st.tuples(st.just("set_node"), nodes()),
    st.tuples(st.just("remove_node"), HOSTS),
    st.tuples(st.just("set_pod"), SHAPE, NUMBER, HOSTS, ACTUAL_CPU),
    st.tuples(st.just("set_pod"), SHAPE, NUMBER, HOSTS, ACTUAL_CPU),
    st.tuples(st.just("finish_pod"), SHAPE, NUMBER, HOSTS),
    st.tuples(st.just("remove_pod"), UID),
    st.tuples(st.just("forget_pod"), INCOMING),
    st.tuples(st.just("confirm_pod"), INCOMING, st.one_of(st.none(), HOSTS)),
    st.tuples(st.just("place"), SHAPE),
    st.tuples(st.just("place"), SHAPE),
    st.tuples(st.just("look"), SHAPE, st.booleans()),
    st.tuples(st.just("look"), SHAPE, st.booleans()),
    st.tuples(st.just("add_nodes"), st.sampled_from([1, 5, 70])),
    st.tuples(st.just("remove_nodes"), st.sampled_from([1, 69])),
)

CLUSTER = st.lists(nodes(), max_size=8)
WANTED = st.lists(shapes(), min_size=SHAPES, max_size=SHAPES)
PLACED = st.tuples(SHAPE, NUMBER, HOSTS, ACTUAL_CPU)

RUN = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def _apply(world: World, change: tuple) -> None:
    kind, *args = change
    if kind == "look":
        world.look(args[0], explain=args[1])
    elif kind == "add_nodes":
        for i in range(args[0]):
            world.set_node(make_node(f"plain{i}", cpu=str(1 + i % 2), uid=f"plain{i}"))
    elif kind == "remove_nodes":
        for i in range(args[0]):
            world.remove_node(f"plain{i}")
    else:
        getattr(world, kind)(*args)


@settings(RUN, max_examples=150)
@given(
    profile=profiles(),
    found=st.lists(nodes(), max_size=6),
    wanted=st.lists(shapes(), min_size=SHAPES, max_size=SHAPES),
    data=st.data(),
)
def test_a_fresh_evaluation_decides_as_the_plain_reference_does(profile, found, wanted, data):
    world = World(profile, wanted)
    for node in found:
        world.set_node(node)
    for placed in data.draw(st.lists(st.tuples(SHAPE, NUMBER, HOSTS, ACTUAL_CPU), max_size=8)):
        world.set_pod(*placed)
    for shape in range(SHAPES):
        world.look(shape, explain=True)


@settings(RUN, max_examples=200)
@given(
    profile=profiles(),
    found=CLUSTER,
    wanted=WANTED,
    changes=st.lists(CHANGES, min_size=5, max_size=40),
    limits=st.tuples(st.sampled_from([1, 8, 4096]), st.sampled_from([1, 256])),
)
def test_after_any_changes_a_kept_evaluation_decides_as_a_fresh_one_and_as_the_plain_reference(
    profile, found, wanted, changes, limits
):
    log_keep, label_keys = limits
    with patch("bayplan.cache.node_index._KEPT_LABEL_KEYS", label_keys):
        world = World(profile, wanted, log_keep=log_keep)
        for node in found:
            world.set_node(node)
        for change in changes:
            _apply(world, change)
        for shape in range(SHAPES):
            world.look(shape, explain=True)
