import logging

import msgspec
import pytest

from bayplan.api.watch_event import read_pod

POD = b'{"kind":"Pod","metadata":{"name":"web","uid":"u"},"spec":{"nodeName":"n1"}}'


@pytest.mark.parametrize("body", [POD, msgspec.Raw(POD)], ids=["answer", "item"])
def test_a_pod_is_read(body):
    pod = read_pod(body)
    assert (pod.metadata.name, pod.metadata.uid, pod.spec.node_name) == ("web", "u", "n1")


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"spec":7}', b'{"metadata":{"uid":"\xff"}}', b'{"spec":{"priority":1e99}}', b"[" * 100_000],
    ids=["nothing", "list", "number", "no text", "no integer", "deep"],
)
def test_what_is_no_pod_is_none_and_told_at_debug_level(body, caplog):
    with caplog.at_level(logging.DEBUG):
        assert read_pod(body) is None
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
