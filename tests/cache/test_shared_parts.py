"""What pods of one template share, and that they stay what they were."""

from dataclasses import dataclass

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_pod

from bayplan.api.objects import Pod
from bayplan.cache.shared_parts import SharedParts


def read(pod: Pod) -> Pod:
    """The pod as a watch brings it: an object of its own."""
    return msgspec.json.decode(msgspec.json.encode(pod), type=Pod)


def test_pods_of_one_template_share_containers_labels_and_tolerations() -> None:
    parts = SharedParts()
    template = {"labels": {"app": "a"}, "cpu": "1", "node_selector": {"disk": "ssd"}}
    first, second = (parts.of(read(make_pod(name, node=name, **template))) for name in ("a", "b"))
    assert second.spec.containers is first.spec.containers
    assert second.metadata.labels is first.metadata.labels
    assert second.spec.node_selector is first.spec.node_selector
    assert (first.spec.node_name, second.spec.node_name) == ("a", "b")


@dataclass(frozen=True)
class Shape:
    cpu: str
    labels: dict[str, str] | None
    node_selector: dict[str, str] | None


TEXTS = st.sampled_from(["", "1", "2", "a"])
MAPS = st.none() | st.dictionaries(TEXTS, TEXTS, max_size=2)


@given(st.lists(st.builds(Shape, st.sampled_from(["1", "2"]), MAPS, MAPS), max_size=8))
def test_a_pod_is_equal_to_what_it_was(shapes: list[Shape]) -> None:
    parts = SharedParts()
    for number, shape in enumerate(shapes):
        pod = make_pod(f"p{number}", cpu=shape.cpu, labels=shape.labels, node_selector=shape.node_selector)
        assert msgspec.json.encode(parts.of(read(pod))) == msgspec.json.encode(read(pod))


def test_what_many_made_up_pods_have_does_not_fill_the_memory() -> None:
    parts = SharedParts()
    first, *_ = [parts.of(make_pod(labels={"app": f"{number}-" + "x" * 500})) for number in range(3000)]
    assert parts.of(read(first)).metadata.labels is not first.metadata.labels
    large = [parts.of(read(make_pod(labels={"app": "x" * 10_000}))) for _ in range(2)]
    assert large[0].metadata.labels is not large[1].metadata.labels


def test_what_cannot_be_written_as_bytes_is_left_as_it_is() -> None:
    pod = make_pod("p", labels={"app": "\ud800"})
    assert SharedParts().of(pod) is pod
    assert pod.metadata.labels == {"app": "\ud800"}
