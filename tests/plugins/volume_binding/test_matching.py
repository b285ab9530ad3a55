from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_selector, make_term
from tests.plugins.volume_scenes import LOCAL, VolumeScene, claim, delayed_class, host, pod_with, ref, volume
from tests.reference.volume_matching import volumes_on

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.effects import Write
from bayplan.plugins.volume_binding import matching

NODES = [host("n1", zone="a"), host("n2", zone="a"), host("n3", zone="b"), host("n4")]
CLAIMS = ("c0", "c1", "c2")
TERMS = [
    (),
    (make_term("zone In a"),),
    (make_term("zone In b"), make_term("kubernetes.io/hostname In n1,n4")),
    (make_term("zone In a,b", "kubernetes.io/hostname NotIn n2"),),
    (make_term("zone DoesNotExist"),),
    (make_term("kubernetes.io/hostname In n3"),),
    (make_term("zone Wrong a"),),
    (make_term(fields=["metadata.name In n1"]),),
]

_few = st.sampled_from

volumes = st.builds(
    dict,
    terms=_few(TERMS),
    size=_few([1, 2, 2, 3, 5]),
    modes=_few([("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany")]),
    phase=_few(["Available", "Available", "Available", "Bound"]),
    claim_ref=_few([None, None, None, ref("c0"), ref("c1", uid=""), ref("c2", uid="old"), ref("other")]),
    labels=_few([None, {"tier": "fast"}]),
    volume_mode=_few([None, None, "Filesystem", "Block"]),
)
claims = st.builds(
    dict,
    size=_few([1, 2, 3]),
    modes=_few([("ReadWriteOnce",), ("ReadOnlyMany",)]),
    selector=_few([None, None, make_selector(tier="fast")]),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(volumes, max_size=6),
    st.lists(claims, min_size=1, max_size=len(CLAIMS)),
    st.lists(_few(CLAIMS), min_size=1, max_size=3),
    _few([0, 8]),
)
def test_every_node_gets_the_volumes_that_the_slow_way_finds(volume_forms, claim_forms, named, few):
    listed = [volume(f"v{i}", **form) for i, form in enumerate(volume_forms)]
    made = [claim(name, **form) for name, form in zip(CLAIMS, claim_forms, strict=False)]
    wanted = [each for name in named for each in made if each.metadata.name == name]
    if not wanted:
        return
    scene = VolumeScene(*NODES, delayed_class(LOCAL), *listed, *made)
    pod = pod_with(*(each.metadata.name for each in wanted))
    # Pods with many claims note what they took in another way.
    with patch.object(matching, "_MOST_LISTS", few):
        rejected = scene.texts(scene.binding, pod)
        for node in NODES:
            expected = volumes_on(node, wanted, listed)
            name = node.metadata.name
            assert (name in rejected) == (None in expected)
            if None not in expected:
                assert _bound(scene, pod, name) == expected


def _bound(scene, pod, node):
    info = PodInfo(pod)
    assert scene.binding.reserve({}, info, node).ok
    effects = scene.binding.pre_bind({}, info, node)
    scene.binding.unreserve({}, info, node)
    return [each.path.rsplit("/", 1)[-1] for each in effects if isinstance(each, Write)]
