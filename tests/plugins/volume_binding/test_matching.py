from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_selector
from tests.plugins.volume_scenes import TERMS, VolumeScene, claim, delayed_class, host, pod_with, ref, volume
from tests.reference.volume_matching import volumes_on

NODES = [host("n1", zone="a"), host("n2", zone="a"), host("n3", zone="b"), host("n4")]
CLAIMS = ("c0", "c1", "c2")

_few = st.sampled_from

volumes = st.fixed_dictionaries(
    {
        "terms": _few(TERMS),
        "size": _few([1, 2, 2, 3, 5]),
        "modes": _few([("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany")]),
        "phase": _few(["Available", "Available", "Available", "Bound"]),
        "claim_ref": _few([None, None, None, ref("c0"), ref("c1", uid=""), ref("c2", uid="old"), ref("other")]),
        "labels": _few([None, {"tier": "fast"}]),
        "volume_mode": _few([None, None, "Filesystem", "Block"]),
    }
)
claims = st.fixed_dictionaries(
    {
        "size": _few([1, 2, 3]),
        "modes": _few([("ReadWriteOnce",), ("ReadOnlyMany",)]),
        "selector": _few([None, None, make_selector(tier="fast")]),
    }
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(volumes, max_size=6),
    st.tuples(claims, claims, claims),
    st.lists(_few(range(len(CLAIMS))), min_size=1, max_size=3),
    _few([0, 9]),
)
def test_every_node_gets_the_volumes_that_the_slow_way_finds(volume_forms, claim_forms, named, small):
    made = [claim(name, **form) for name, form in zip(CLAIMS, claim_forms, strict=True)]
    # Pods with more than eight claims note in another way what earlier claims took.
    small_claims = [claim(f"small{i}", size=0) for i in range(small)]
    wanted = [*small_claims, *(made[number] for number in named)]
    listed = [volume(f"small{i}", size=i, claim_ref=ref(f"small{i}")) for i in range(small)]
    listed += [volume(f"v{i}", **form) for i, form in enumerate(volume_forms)]
    scene = VolumeScene(*NODES, delayed_class(), *listed, *made, *small_claims)
    pod = pod_with(*(each.metadata.name for each in wanted))
    rejected = scene.texts(scene.binding, pod)
    for node in NODES:
        expected = volumes_on(node, wanted, listed)
        assert (node.metadata.name in rejected) == (None in expected)
        if None not in expected:
            assert scene.bound(pod, node.metadata.name) == expected
