"""An object in protobuf gets a finalizer more, and keeps every byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.plugins.dynamic_resources.stored_claim import with_finalizer


def varint(number):
    return (number & 0x7F | (0x80 if number > 0x7F else 0)).to_bytes() + (varint(number >> 7) if number > 0x7F else b"")


def field(tag, value):
    return bytes([tag]) + varint(len(value)) + value


@given(st.binary(max_size=40_000), st.text(min_size=1, max_size=300))
def test_the_object_is_followed_by_metadata_that_is_merged_with_its_own(raw, finalizer):
    kind, encoding = field(0x0A, field(0x0A, b"resource.k8s.io/v1")), field(0x1A, b"")
    metadata = field(0x0A, field(0x72, finalizer.encode()))
    assert with_finalizer(b"k8s\x00" + kind + field(0x12, raw) + encoding, finalizer) == (
        b"k8s\x00" + kind + field(0x12, raw + metadata) + encoding
    )


@pytest.mark.parametrize(
    "stored", [b"", b'{"kind": "ResourceClaim"}', b"k8s\x00\x12\x05abc", b"k8s\x00\x12\x80", b"k8s\x00\x12"]
)
def test_what_is_no_object_in_protobuf_is_refused(stored):
    with pytest.raises(ValueError, match="the answer is"):
        with_finalizer(stored, "f")
