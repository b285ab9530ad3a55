"""After etcd was restored from a backup, versions go back, and a list is the truth whatever its versions are."""

from tests.api.reflecting import PODS, pod, reflecting, truth
from tests.faults import faults
from tests.waiting import until


def restore(server, version, *pods):
    """Have the server be as it was at `version`, and then take these pods in."""
    server.restore(version)
    for each in pods:
        server.put(PODS, each)


def kept(name, uid, **spec):
    """A pod that had this UID before."""
    made = pod(name, **spec)
    made["metadata"]["uid"] = uid
    return made


async def test_a_list_that_went_back_replaces_all_versions_and_is_told(server):
    told = []
    server.put(PODS, pod("a"))
    server.put(PODS, pod("b"))
    async with reflecting(server, on_went_back=lambda: told.append(1)) as (reflector, view):
        await until(lambda: len(view.objects) == 2 and server.watches(PODS))
        server.put(PODS, pod("b", nodeName="late"))
        await until(lambda: view.objects["b"].spec.node_name == "late")
        uids = {name: obj.metadata.uid for name, obj in view.objects.items()}
        # The same UIDs and versions as before, in another history.
        restore(server, 10, *(kept(name, uids[name], nodeName="new") for name in "ab"))
        server.inject(faults.StreamError(410), method="WATCH")
        server.end_watches()
        await until(lambda: told)
        assert [obj.spec.node_name for obj in view.objects.values()] == ["new", "new"]
        assert view.versions() == truth(server)
        assert reflector.relists_total == 1


async def test_it_lists_anew_when_asked_to_and_takes_nothing_for_known(server):
    told = []
    server.put(PODS, pod("a"))
    async with reflecting(server, on_went_back=lambda: told.append(1)) as (reflector, view):
        await until(lambda: view.objects and server.watches(PODS))
        restore(server, 10, kept("a", view.objects["a"].metadata.uid))
        reflector.relist()
        await until(lambda: reflector.relists_total == 1)
        assert view.calls == ["add a", "synced", "update a"]
        assert view.versions() == truth(server)
        await until(lambda: server.watches(PODS) == 2)
        server.put(PODS, pod("b"))
        await until(lambda: "b" in view.objects)
        assert told == [], "whoever asks knows already"


async def test_a_list_that_fails_midway_is_the_truth_when_it_succeeds(server):
    told = []
    server.put(PODS, pod("z"))
    for name in "abc":
        server.put(PODS, pod(name))
    async with reflecting(server, page_size=2, on_went_back=lambda: told.append(1)) as (_, view):
        await until(lambda: len(view.objects) == 4 and server.watches(PODS))
        uids = {name: obj.metadata.uid for name, obj in view.objects.items()}
        server.inject(faults.StreamError(410), method="WATCH")
        # The second page of the next list fails.
        view.hook = lambda call: server.inject(faults.Refuse(500), method="GET") if call == "add aa" else None
        restore(server, 9, pod("aa"), *(kept(name, uids[name], nodeName="other") for name in "abc"))
        server.end_watches()
        await until(lambda: told)
        assert view.versions() == truth(server)
        assert {obj.spec.node_name for name, obj in view.objects.items() if name != "aa"} == {"other"}
    assert told == [1]
