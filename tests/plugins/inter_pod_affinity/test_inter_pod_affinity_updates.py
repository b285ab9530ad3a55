from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_pod_info, make_selector
from tests.plugins.inter_pod_affinity.affinity_scenes import AffinityScene, preferred, required, term

from bayplan.api.objects import LabelSelector
from bayplan.cache.change_log import PodLog
from bayplan.config.types import InterPodAffinityArgs

NAMESPACES = ["a", "b", "c"]
SELECTORS = [
    None,
    LabelSelector(),
    make_selector(app="x"),
    make_selector("app In x,y"),
    make_selector("app NotIn x"),
    make_selector("app Exists"),
    make_selector("tier DoesNotExist"),
]
NAMESPACE_SELECTORS = [None, None, None, LabelSelector(), make_selector(team="red"), make_selector("team NotIn red")]

TOO_LARGE_TO_LOG = {"note": "x" * 2**15}

_few = st.sampled_from
labels = st.fixed_dictionaries({}, optional={"app": _few(["x", "y"]), "tier": _few(["1", "2"]), "id": _few("123")})
terms = st.builds(
    lambda key, selector, spaces, named: term(
        key, label_selector=selector, namespace_selector=spaces, namespaces=named or None
    ),
    _few(["zone", "zone", "host", "rack", ""]),
    _few(SELECTORS),
    _few(NAMESPACE_SELECTORS),
    _few([[], [], [], ["a"], ["b", "c"]]),
)
some_terms = st.lists(terms, max_size=2)
wishes = st.lists(st.tuples(_few([1, 7, 100]), terms), max_size=2)


@st.composite
def affinities(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        return {}
    near, far = required(*draw(some_terms)), required(*draw(some_terms))
    soft_near, soft_far = preferred(*draw(wishes)), preferred(*draw(wishes))
    key = "preferred_during_scheduling_ignored_during_execution"
    hard = "required_during_scheduling_ignored_during_execution"
    return {
        name: type(each)(**{hard: getattr(each, hard), key: getattr(soft, key)})
        for name, each, soft in (("pod_affinity", near, soft_near), ("pod_anti_affinity", far, soft_far))
    }


shapes = st.builds(
    lambda affinity, labels, namespace: affinity | {"labels": labels, "namespace": namespace},
    affinities(),
    labels,
    _few(NAMESPACES),
)
node_labels = st.fixed_dictionaries({}, optional={"zone": _few(["z1", "z2", ""]), "rack": _few(["r1", "r2"])})
names = _few(["n0", "n1", "n2", "n3"])
steps = st.one_of(
    st.tuples(st.just("node"), names, node_labels),
    st.tuples(st.just("drop node"), names),
    st.tuples(st.just("pod"), st.integers(0, 5), st.integers(0, 3), names),
    st.tuples(st.just("pod"), st.integers(0, 5), st.integers(0, 3), names),
    st.tuples(st.just("relabel"), st.integers(0, 5), st.integers(0, 3), names, labels),
    st.tuples(st.just("drop pod"), st.integers(0, 5), st.integers(0, 3)),
    st.tuples(st.just("namespace"), _few(NAMESPACES), _few(["red", "blue"])),
    st.tuples(st.just("drop namespace"), _few(NAMESPACES)),
    st.tuples(st.just("many nodes"), st.integers(1, 70)),
)


class Changing:
    def __init__(self, scene: AffinityScene, pods: list[dict[str, Any]]) -> None:
        self.scene = scene
        self.pods = pods

    def apply(self, step: tuple[Any, ...]) -> None:
        cache = self.scene.cache
        match step:
            case ("node", name, given):
                cache.set_node(make_node(name, uid=name, labels=given | {"host": name}))
            case ("drop node", name):
                cache.remove_node(name)
            case ("pod", shape, number, node):
                self.place(shape, number, node, self.pods[shape])
            case ("relabel", shape, number, node, given):
                self.place(shape, number, node, self.pods[shape] | {"labels": given})
            case ("drop pod", shape, number):
                cache.remove_pod(f"{shape}-{number}")
            case ("namespace", name, team):
                self.scene.set_namespace(name, team=team)
            case ("drop namespace", name):
                self.scene.namespaces.delete(name)
            case ("many nodes", count):
                for i in range(count):
                    cache.set_node(make_node(f"m{i}", uid=f"m{i}", labels={"host": f"m{i}"}))

    def place(self, shape: int, number: int, node: str, form: dict[str, Any]) -> None:
        uid = f"{shape}-{number}"
        if number == 1:
            form = form | {"labels": form.get("labels", {}) | TOO_LARGE_TO_LOG}
        self.scene.cache.set_pod(make_pod_info(uid, uid=uid, node=node, **form))

    def check(self) -> None:
        for form in self.pods:
            self.scene.check(make_pod("incoming", **form))


@settings(max_examples=60, deadline=None)
@given(
    pods=st.lists(shapes, min_size=6, max_size=6),
    script=st.lists(steps, min_size=4, max_size=16),
    hard_weight=_few([0, 1, 5]),
    ignore=_few([False, False, True]),
    log_keep=_few([1, 4096]),
)
def test_after_any_changes_it_says_what_a_look_at_every_pod_would(pods, script, hard_weight, ignore, log_keep):
    args = InterPodAffinityArgs(hard_pod_affinity_weight=hard_weight, ignore_preferred_terms_of_existing_pods=ignore)
    scene = AffinityScene(args=args)
    log, scene.cache.nodes.pods_changed = scene.cache.nodes.pods_changed, PodLog(keep=log_keep * 8192)
    scene.cache.nodes.pods_changed.readers |= log.readers
    world = Changing(scene, pods)
    for i, name in enumerate(["n0", "n1", "n2"]):
        world.apply(("node", name, {"zone": f"z{i % 2 + 1}"}))
    for at, step in enumerate(script):
        world.apply(step)
        if at % 3 != 1:
            world.check()
    world.check()
