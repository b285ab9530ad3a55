import pytest
from tests.snapshot.snapshots import read_objects

from bayplan.api.claim_objects import ClaimMeta, ResourceClaim
from bayplan.api.objects import Condition, Node, Pod
from bayplan.config.load import default_configuration
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.simulator import Simulator
from bayplan.snapshot.listing import ForbiddenError, ListedObjects, ListingError
from bayplan.snapshot.snapshot import KINDS, MissingRightsError, Snapshot, pieces, take_snapshot


def lister(asked=None, **answers):
    """Lists nothing, or what is given by plural; an exception is raised."""

    async def list_kind(resource):
        if asked is not None:
            asked.append(resource.plural)
        answer = answers.get(resource.plural, ListedObjects())
        if isinstance(answer, Exception):
            raise answer
        return answer

    return list_kind


async def test_all_that_simulations_read_is_listed_once_pods_first():
    asked = []
    snapshot = await take_snapshot(lister(asked, pods=ListedObjects([Pod()]), nodes=ListedObjects([Node(), Node()])))
    assert asked == [each.plural for each in KINDS]
    assert asked[0] == "pods"
    assert len({each.path for each in KINDS}) == len(KINDS)
    assert snapshot.counts == {"Pod": 1, "Node": 2}


def test_what_a_drain_asks_of_budgets_is_kept():
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]
    ((_, pod),) = read_objects([{"apiVersion": "v1", "kind": "Pod", "status": {"conditions": conditions}}])
    assert [(each.type, each.status) for each in pod.status.conditions] == [("Ready", "True")]


def test_whether_a_scheduler_tried_a_pod_is_kept():
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    for condition, kept in ((refused, [Condition(**refused)]), ({"type": "PodScheduled", "status": "True"}, None)):
        ((_, pod),) = read_objects([{"apiVersion": "v1", "kind": "Pod", "status": {"conditions": [condition]}}])
        assert pod.status.conditions == kept


def test_secrets_and_config_maps_are_never_asked_for():
    assert not {"secrets", "configmaps"} & {each.plural for each in KINDS}


async def test_all_missing_rights_are_named_at_once():
    refused = {name: ForbiddenError(f"{name}: 403") for name in ("nodes", "poddisruptionbudgets", "jobs")}
    with pytest.raises(MissingRightsError) as raised:
        await take_snapshot(lister(**refused))
    assert str(raised.value).splitlines() == [
        "nodes: 403; the right to list nodes is missing",
        "poddisruptionbudgets: 403; the right to list poddisruptionbudgets.policy is missing",
        "jobs: 403; the right to list jobs.batch is missing",
        "Give the rights: nodes cannot be left out.",
    ]


async def test_kinds_that_may_not_be_listed_are_left_out_if_that_is_asked_for():
    snapshot = await take_snapshot(lister(jobs=ForbiddenError("jobs: 403")), ignore_forbidden=True)
    assert snapshot.forbidden == ["jobs: 403; the right to list jobs.batch is missing"]


async def test_devices_that_may_not_be_listed_are_left_out_and_named():
    snapshot = await take_snapshot(lister(resourceclaims=ForbiddenError("resourceclaims: 403")))
    assert snapshot.forbidden == ["resourceclaims: 403; the right to list resourceclaims.resource.k8s.io is missing"]


async def test_a_redacted_file_has_no_devices():
    claims = ListedObjects([ResourceClaim(ClaimMeta(name="secret-project"))])
    snapshot = await take_snapshot(lister(resourceclaims=claims))
    assert b"secret-project" in b"".join(pieces(snapshot))
    assert b"".join(pieces(snapshot, redact=True)).split() == b'{"apiVersion":"v1","kind":"List","items":[ ]}'.split()


@pytest.mark.parametrize("essential", ["nodes", "pods"])
async def test_without_nodes_and_pods_there_is_no_snapshot(essential):
    with pytest.raises(MissingRightsError):
        await take_snapshot(lister(**{essential: ForbiddenError("403")}), ignore_forbidden=True)


async def test_another_error_ends_the_reading():
    with pytest.raises(ListingError):
        await take_snapshot(lister(nodes=ListingError("nodes: 500")), ignore_forbidden=True)


async def test_what_cannot_be_read_is_told():
    snapshot = await take_snapshot(lister(pods=ListedObjects([], ["Pod x: bad"])))
    assert snapshot.unreadable == ["Pod x: bad"]


async def test_a_redacted_file_tells_which_extended_resources_devices_stand_for(tmp_path):
    amounts = {"cpu": 1, "example.com/gpu": 2}
    container = {"name": "c", "resources": {"requests": amounts, "limits": {"example.com/gpu": 2}}}
    selectors = [{"cel": {"expression": 'device.driver == "secret.example.com"'}}]
    spec = {"extendedResourceName": "example.com/gpu", "selectors": selectors}
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [container]}}
    offered = {"status": {"allocatable": {"cpu": 2, "pods": 110}}}
    objects = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "secret"}, "spec": spec},
        *({"apiVersion": "v1", "kind": "Node", "metadata": {"name": each}, **offered} for each in ("n1", "n2")),
        {"apiVersion": "v1", "kind": "Pod", **pod},
    ]
    file = tmp_path / "redacted.json"
    file.write_bytes(b"".join(pieces(Snapshot(read_objects(objects)), redact=True)))
    assert b"secret" not in file.read_bytes()
    simulator = Simulator(default_configuration())
    simulator.add(read_cluster([str(file)]))
    summary = simulator.run().summary
    assert (summary.overcommitted_nodes, summary.lower_bound_nodes) == (0, 1)
