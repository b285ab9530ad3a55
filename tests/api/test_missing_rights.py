"""A right to write that is missing is named in the log, once and then at a bounded rate."""

from tests.api.clients import BINDING, POD, calling, put_pod
from tests.clock import Clock
from tests.faults.faults import Refuse

from bayplan.api.credentials import Credentials
from bayplan.api.missing_rights import AGAIN_SECONDS, MissingRights

DENIED = (
    'pods "{}" is forbidden: User "system:serviceaccount:kube-system:bayplan" cannot create resource '
    '"pods/binding" in API group "" in the namespace "{}"'
)


def test_a_right_is_told_once_with_its_verb_resource_namespace_and_the_manifest_that_grants_it(caplog):
    rights = MissingRights()
    for pod in ("a", "b"):
        rights.refused(DENIED.format(pod, "shop"))
    (told,) = caplog.messages
    assert told == (
        "permission missing, grant create resource=pods/binding namespace='shop' grantedBy=manifests/base "
        f"reason={DENIED.format('a', 'shop')!r}"
    )


def test_it_is_told_again_while_it_is_missing_at_a_bounded_rate_and_of_a_bounded_number_of_namespaces(caplog):
    clock = Clock()
    rights = MissingRights(clock)
    for seconds in (0.0, AGAIN_SECONDS - 1, 1.0):
        clock.now += seconds
        rights.refused(DENIED.format("a", "shop"))
    assert len(caplog.messages) == 2
    for number in range(1000):
        rights.refused(DENIED.format("a", f"n{number}"))
    assert len(caplog.messages) < 40
    clock.now += AGAIN_SECONDS
    rights.refused(DENIED.format("a", "last"))
    assert "namespace='last'" in caplog.messages[-1]


def test_a_403_of_admission_is_no_missing_right(caplog):
    MissingRights().refused('pods "a" is forbidden: exceeded quota: small')
    assert caplog.messages == []


async def test_the_client_tells_of_a_write_that_is_forbidden_and_not_of_a_read(server):
    told = []
    put_pod(server).inject(Refuse(403, "Forbidden", message="no"), times=2)
    async with calling(Credentials(server=server.url), on_forbidden=told.append) as client:
        await client.request("GET", POD)
        await client.request("POST", f"{POD}/binding", body=BINDING)
    assert told == ["Forbidden: no"]
