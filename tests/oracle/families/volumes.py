"""Claims, volumes, storage classes, drivers and their limits."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts
from tests.oracle.families.storage_objects import Storage

_DISKS = ("disk-a", "disk-b")


def generate_binding(dice: Dice) -> Scene:
    """Claims that are bound, that wait for their first consumer, that nobody bound, and that are not there."""
    cluster = parts.nodes(dice, 3, 10)
    storage = Storage(dice, cluster)
    storage.add_classes()
    storage.add_free_volumes(dice.randint(0, 8))
    if dice.maybe(0.6):
        storage.add_capacities()
    placed = parts.placed_pods(dice, cluster, 0.4)
    incoming = [parts.pod(dice, storage.name_of(f"p{index}")) for index in range(dice.randint(3, 6))]
    for each in placed:
        each["metadata"]["name"] = storage.name_of(each["metadata"]["name"])
        parts.requests(dice, each, large=0.0)
        if dice.maybe(0.5):
            _use(each, storage.bound_claim(each["metadata"]["namespace"], on=each["spec"]["nodeName"]))
    for each in incoming:
        parts.requests(dice, each, large=0.0)
        for _ in range(dice.choice((0, 1, 1, 1, 2))):
            _use(each, storage.any_claim(each["metadata"]["namespace"]))
        if dice.maybe(0.06):
            _ephemeral(each, storage, made=dice.maybe(0.5))
    return Scene(storage.objects, cluster, placed, incoming)


def generate_scores(dice: Dice) -> Scene:
    """Nodes that differ in the storage they have left, and pods whose claims wait for them."""
    cluster = parts.nodes(dice, 4, 9)
    storage = Storage(dice, cluster)
    storage.add_classes()
    storage.add_volumes_of_nodes()
    storage.add_space()
    incoming = [parts.pod(dice, storage.name_of(f"p{index}")) for index in range(dice.randint(3, 6))]
    for each in incoming:
        for _ in range(dice.choice((1, 1, 2, 3))):
            _use(each, storage.late_claim(each["metadata"]["namespace"]))
    return Scene(storage.objects, cluster, [], incoming)


def generate_limits(dice: Dice) -> Scene:
    """Few volumes a node, pods that share claims, and claims that one pod at a time may use."""
    cluster = parts.nodes(dice, 3, 8)
    storage = Storage(dice, cluster)
    storage.add_classes()
    storage.add_csi_nodes(most=dice.choice((1, 2, 3)))
    placed = parts.placed_pods(dice, cluster, dice.choice((0.5, 1.5)))
    incoming = [parts.pod(dice, storage.name_of(f"p{index}")) for index in range(dice.randint(3, 6))]
    for each in placed:
        each["metadata"]["name"] = storage.name_of(each["metadata"]["name"])
    disks = dice.choice((0.1, 0.2, 0.9))
    for each in (*placed, *incoming):
        parts.requests(dice, each, large=0.0)
        namespace = each["metadata"]["namespace"]
        for _ in range(dice.choice((0, 1, 1, 2, 3))):
            shared = storage.shared_claim(namespace) if dice.maybe(0.35) else None
            _use(each, shared or storage.bound_claim(namespace, on=each["spec"].get("nodeName")))
        if dice.maybe(disks):
            _inline_disk(dice, each)
        if dice.maybe(0.1):
            _add(each, {"csi": {"driver": "fast.example.com"}})
    if dice.maybe(0.5):
        storage.add_attachments()
    return Scene(storage.objects, cluster, placed, incoming)


def fill(dice: Dice, storage: Storage, placed: list[Object], incoming: list[Object]) -> None:
    """Gives a scene of other rules storage of all kinds, and some of its pods claims."""
    storage.add_classes()
    storage.add_free_volumes(dice.randint(2, 8))
    storage.add_csi_nodes(most=4)
    if dice.maybe(0.6):
        storage.add_capacities()
    for each in (*placed, *incoming):
        each["metadata"]["name"] = storage.name_of(each["metadata"]["name"])
    for each in placed:
        if dice.maybe(0.3):
            _use(each, storage.bound_claim(each["metadata"]["namespace"], on=each["spec"]["nodeName"]))
    for each in incoming:
        for _ in range(dice.choice((0, 1, 1, 2))):
            _use(each, storage.any_claim(each["metadata"]["namespace"]))
        if dice.maybe(0.1):
            _inline_disk(dice, each)


def _use(each: Object, claim: str) -> None:
    names = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in each["spec"].get("volumes", ())
        if "persistentVolumeClaim" in volume
    }
    if claim not in names:
        _add(each, {"persistentVolumeClaim": {"claimName": claim}})


def _ephemeral(each: Object, storage: Storage, *, made: bool) -> None:
    """A claim that comes and goes with the pod; nobody makes it, but there may be a stranger of its name."""
    if made:
        storage.add_stranger(each["metadata"]["namespace"], f"{each['metadata']['name']}-own")
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = each["spec"].setdefault("volumes", [])
    volumes.append({"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": wanted}}})


def _add(each: Object, source: Object) -> None:
    volumes = each["spec"].setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}", **source})


def _inline_disk(dice: Dice, each: Object) -> None:
    """A disk that is no claim and that two pods cannot have on one node, unless both only read."""
    disk, read_only = dice.choice(_DISKS), dice.maybe(0.4)
    kind = dice.choice(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))
    sources: dict[str, Object] = {
        "gcePersistentDisk": {"pdName": disk},
        "awsElasticBlockStore": {"volumeID": disk},
        "iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": f"iqn.2026-01.com.example:{disk}", "lun": 0},
        "rbd": {"monitors": dice.some(("m1", "m2"), 1, 2), "pool": "p", "image": disk},
    }
    _add(each, {kind: {**sources[kind], **({"readOnly": True} if read_only else {})}})
