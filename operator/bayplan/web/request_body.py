"""Makes JSON of the YAML that people have, on their own machine: the scheduler reads no YAML of others."""

import msgspec

from bayplan.simulate.documents import raw_objects


def as_json(data: bytes, name: str) -> bytes:
    """Return the objects in `data`, YAML or JSON as kubectl takes them, as the body of `SchedulerClient.simulate`.

    Raises:
        ClusterFileError: it is neither, or something in it is no object; the text begins with `name`.
    """
    items = [raw.value for raw in raw_objects(data, name)]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
