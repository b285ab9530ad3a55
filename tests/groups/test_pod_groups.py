"""Which groups are known, and which pods on nodes are members of which."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.builders import make_node, make_pod_info
from tests.cache_checks import assert_adds_up
from tests.group_builders import make_pod_group

from bayplan.cache.cache import Cache
from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource, PodGroupKey
from bayplan.groups.pod_groups import PodGroups

NATIVE, CRD = GroupSource.NATIVE, GroupSource.CRD
KEY = PodGroupKey(CRD, "default", "g")
LABELS = {POD_GROUP_LABEL: "g"}


def test_a_pod_is_a_member_only_once_the_kind_of_its_group_is_served():
    groups = PodGroups(Cache())
    pod = make_pod_info(labels=LABELS)
    assert groups.of(pod) is None
    assert groups.serve(NATIVE)
    assert groups.of(pod) is None
    assert groups.serve(CRD)
    assert groups.of(pod) == KEY
    assert not groups.serve(CRD)
    assert groups.is_served(CRD)


def test_an_ordinary_pod_is_no_member_whatever_is_served():
    groups = PodGroups(Cache())
    groups.serve(CRD)
    assert groups.of(make_pod_info(labels={"app": "web"})) is None


def test_groups_of_one_name_and_two_kinds_are_two_groups():
    groups = PodGroups(Cache())
    own, other = make_pod_group(least=2), make_pod_group(least=3, crd=True)
    groups.set(own)
    groups.set(other)
    assert (groups.get(own.key), groups.get(other.key), len(groups)) == (own, other, 2)
    groups.remove(own.key)
    assert (groups.get(own.key), list(groups)) == (None, [other])
    groups.remove(own.key)
    assert len(groups) == 1


def test_members_on_nodes_count_once_assumed_or_bound_by_anybody_until_they_end():
    cache = Cache()
    groups = PodGroups(cache)
    cache.set_node(make_node("n"))
    ours = make_pod_info("ours", labels=LABELS)
    cache.assume_pod(ours, "n")
    theirs = make_pod_info("theirs", labels=LABELS, node="n", scheduler_name="other")
    lost = make_pod_info("lost", labels=LABELS, node="gone")
    for each in (theirs, lost):
        cache.set_pod(each)
    assert list(groups.placed(KEY)) == [ours.uid, theirs.uid, lost.uid]
    cache.forget_pod(ours.uid)
    cache.set_pod(make_pod_info("theirs", uid=theirs.uid, labels=LABELS, node="n", phase="Succeeded"))
    cache.remove_pod(lost.uid)
    assert len(groups.placed(KEY)) == 0


def test_a_pod_whose_label_changes_on_its_node_is_a_member_of_the_other_group():
    cache = Cache()
    groups = PodGroups(cache)
    cache.set_node(make_node("n"))
    for labels, counts in (
        (LABELS, (1, 0)),
        ({POD_GROUP_LABEL: "h"}, (0, 1)),
        ({}, (0, 0)),
        (LABELS, (1, 0)),
    ):
        cache.set_pod(make_pod_info("p", uid="u", labels=labels, node="n"))
        assert tuple(len(groups.placed(KEY._replace(name=name))) for name in "gh") == counts


def test_the_newest_version_of_a_member_is_the_one_that_counts():
    cache = Cache()
    cache.set_node(make_node("n"))
    newest = make_pod_info("p", uid="u", labels={**LABELS, "more": "1"}, node="n")
    for each in (make_pod_info("p", uid="u", labels=LABELS, node="n"), newest):
        cache.set_pod(each)
    assert PodGroups(cache).placed(KEY)["u"] is newest


def test_a_copy_of_a_cache_has_its_own_members():
    cache = Cache()
    cache.set_node(make_node("n"))
    cache.set_pod(make_pod_info("p", labels=LABELS, node="n"))
    copy = Cache.of(cache.nodes.copy(), {})
    cache.remove_pod(next(iter(cache.members.of(KEY))))
    assert (len(cache.members.of(KEY)), len(copy.members.of(KEY))) == (0, 1)


def test_only_what_may_change_the_priority_of_pods_on_nodes_is_told_as_that():
    cache = Cache()
    groups = PodGroups(cache)
    cache.set_node(make_node("n0"))
    versions = [groups.priorities_version]

    def is_told():
        versions.append(groups.priorities_version)
        return versions[-1] > versions[-2]

    groups.serve(NATIVE)
    assert is_told()
    groups.set(make_pod_group(least=2, priority=5))
    assert not is_told()
    cache.set_pod(make_pod_info(node="n0", group="g"))
    groups.set(make_pod_group(least=3, priority=5))
    assert not is_told()
    groups.set(make_pod_group(least=3, priority=6))
    assert is_told()
    groups.remove(make_pod_group().key)
    assert is_told()


class MembersOfACache(RuleBasedStateMachine):
    """Whatever comes and goes in whatever order, members are the pods on nodes that name the group."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.cache.set_node(make_node("n0"))

    uids = st.sampled_from([f"u{number}" for number in range(4)])
    places = st.sampled_from(["n0", "n1"])
    naming = st.sampled_from([{}, {"group": "g"}, {"labels": {POD_GROUP_LABEL: "g"}}, {"labels": LABELS, "group": "h"}])

    @rule(uid=uids, node=places, names=naming, phase=st.sampled_from(["Running", "Succeeded"]))
    def see(self, uid, node, names, phase):
        self.cache.set_pod(make_pod_info(uid, uid=uid, node=node, phase=phase, **names))

    @rule(uid=uids, node=places, names=naming)
    def assume(self, uid, node, names):
        if self.cache.node_of(uid) is None:
            self.cache.assume_pod(make_pod_info(uid, uid=uid, **names), node)

    @rule(uid=uids)
    def forget(self, uid):
        self.cache.forget_pod(uid)

    @rule(uid=uids)
    def remove(self, uid):
        self.cache.remove_pod(uid)

    @rule(there=st.booleans())
    def change_node(self, there):
        if there:
            self.cache.set_node(make_node("n1"))
        else:
            self.cache.remove_node("n1")

    @invariant()
    def members_are_the_pods_that_name_the_group(self):
        assert_adds_up(self.cache)
        uids = {f"u{number}" for number in range(4)}
        for source in GroupSource:
            for name in "gh":
                members = self.cache.members.of(PodGroupKey(source, "default", name))
                assert members.keys() <= {uid for uid in uids if self.cache.node_of(uid) is not None}


TestMembersOfACache = MembersOfACache.TestCase
