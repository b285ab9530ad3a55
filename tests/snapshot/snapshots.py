"""Snapshots of clusters that are given as plain objects, without an API server."""

import json

from bayplan.simulate.documents import Decoder, raw_objects
from bayplan.snapshot.listing import trimmed
from bayplan.snapshot.redaction import Redaction
from bayplan.snapshot.snapshot import KINDS, document

RESOURCES = {(each.api_version, each.kind): each for each in KINDS}
_DECODERS = {each: Decoder(each.type) for each in KINDS}


def read_objects(items):
    """The resource and the object of each of the items, of those kinds that snapshots have."""
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    found = []
    for raw in raw_objects(data, "items"):
        resource = RESOURCES.get((raw.api_version, raw.kind))
        if resource is not None:
            found.append((resource, trimmed(_DECODERS[resource](raw.value))))
    return found


def redacted(objects, kept_labels=(), key=b"a key"):
    """The same, redacted."""
    redaction = Redaction([obj for _, obj in objects], key, kept_labels)
    return [(resource, redaction(obj)) for resource, obj in objects]


def text_of(objects):
    """What the file holds."""
    return b"".join(document(objects))
