"""A right to write that is missing, or admission that refuses, is named in the log, once and then at a bounded rate."""

from pathlib import Path

import pytest
import yaml
from tests.api.clients import BINDING, POD, calling, put_pod
from tests.clock import Clock
from tests.faults.faults import Refuse
from tests.waiting import Sleeps

from bayplan.api.credentials import Credentials
from bayplan.api.response import AGAIN_SECONDS, Refusals

MANIFESTS = Path(__file__).parents[2] / "manifests"
OF_OTHERS = ("components/monitoring", "components/reader", "overlays/shadow")
"""Whose roles are not for the scheduler."""
DENIED = (
    'pods "{}" is forbidden: User "system:serviceaccount:kube-system:bayplan" cannot create resource '
    '"pods/binding" in API group "" in the namespace "{}"'
)


def test_a_right_is_told_once_with_its_verb_resource_namespace_and_the_manifest_that_grants_it(caplog):
    refusals = Refusals()
    for pod in ("a", "b"):
        refusals.forbidden(DENIED.format(pod, "shop"))
    (told,) = caplog.messages
    assert told == (
        "permission missing, grant create resource=pods/binding namespace='shop' grantedBy=manifests/base "
        f"reason={DENIED.format('a', 'shop')!r}"
    )


def test_it_is_told_again_while_it_is_missing_at_a_bounded_rate_and_of_a_bounded_number_of_namespaces(caplog):
    clock = Clock()
    refusals = Refusals(clock)
    for seconds in (0.0, AGAIN_SECONDS - 1, 1.0):
        clock.now += seconds
        refusals.forbidden(DENIED.format("a", "shop"))
    assert len(caplog.messages) == 2
    for number in range(1000):
        refusals.forbidden(DENIED.format("a", f"n{number}"))
    assert len(caplog.messages) < 40
    clock.now += AGAIN_SECONDS
    refusals.forbidden(DENIED.format("a", "last"))
    assert "namespace='last'" in caplog.messages[-1]


def test_what_admission_refuses_is_told_once_a_namespace_and_again_while_it_goes_on(caplog):
    clock = Clock()
    refusals = Refusals(clock)
    for seconds in (0.0, 1.0, AGAIN_SECONDS):
        clock.now += seconds
        refusals.by_admission("pods/binding", "shop")
    refusals.by_admission("pods/binding", "bank")
    line = "admission refuses writes, and the Events of the pods say why resource=pods/binding namespace="
    assert caplog.messages == [f"{line}'shop'", f"{line}'shop'", f"{line}'bank'"]


def test_a_403_of_admission_is_no_missing_right(caplog):
    Refusals().forbidden('pods "a" is forbidden: exceeded quota: small')
    assert caplog.messages == []


async def test_the_client_tells_of_a_write_that_is_forbidden_and_not_of_a_read(server):
    told = []
    put_pod(server).inject(Refuse(403, "Forbidden", message="no"), times=2)
    async with calling(Credentials(server=server.url), on_forbidden=told.append) as client:
        await client.request("GET", POD)
        await client.request("POST", f"{POD}/binding", body=BINDING)
    assert told == ["Forbidden: no"]


def granted_writes():
    """The rights to write that the manifests give the scheduler, each with the part that has the role."""
    for file in sorted(MANIFESTS.glob("**/rbac.yaml")):
        part = file.parent.relative_to(MANIFESTS).as_posix()
        documents = [] if part in OF_OTHERS else list(yaml.safe_load_all(file.read_text()))
        for rule in (rule for each in documents for rule in each.get("rules", ())):
            for verb in {*rule["verbs"]} - {"get", "list", "watch"}:
                yield from ((verb, resource, part) for resource in rule["resources"])


@pytest.mark.parametrize(("verb", "resource", "part"), sorted(granted_writes()))
def test_each_right_that_the_manifests_grant_is_named_with_the_part_that_does(caplog, verb, resource, part):
    Refusals().forbidden(f'no: User "u" cannot {verb} resource "{resource}" in API group ""')
    assert f"grant {verb} resource={resource} namespace='' grantedBy=manifests/{part} " in caplog.text


async def test_a_403_of_an_api_server_that_may_not_have_read_its_roles_is_not_believed(server):
    put_pod(server).inject(Refuse(403, "Forbidden", message="no"), times=2)
    told, sleeps, doubts = [], Sleeps(), iter([True, True])
    async with calling(
        Credentials(server=server.url), on_forbidden=told.append, has_unread_roles=lambda: next(doubts), sleep=sleeps
    ) as client:
        assert (await client.request("POST", f"{POD}/binding", body=BINDING)).status == 201
    assert (told, len(sleeps.delays), len(server.requests)) == ([], 2, 3)
