"""A whole process that decides beside another scheduler: what it asks the API server, what it tells, how it ends."""

import logging
import os
import signal

from tests.controller.kubernetes_api import NODES, PODS, node, pod
from tests.faults.faults import Refuse

from bayplan.config.load import default_configuration
from bayplan.scheduler.shadow import shadow_configuration

THEIRS = "default-scheduler"


def start(cluster, *nodes):
    cluster.start(*nodes, configuration=shadow_configuration(default_configuration(), [THEIRS]), is_shadow=True)


def bind(cluster, name, to):
    cluster.server.put(PODS, pod(name, scheduler=THEIRS, nodeName=to))


async def test_it_compares_binds_of_the_other_and_writes_nothing(cluster, caplog):
    caplog.set_level(logging.INFO)
    start(cluster, "n1", "n2")
    await cluster.until_ready()
    cluster.server.put(PODS, pod("waits", scheduler=THEIRS))
    for name, to in (("first", "n1"), ("second", "n2"), ("waits", "n1")):
        bind(cluster, name, to)
    decisions = cluster.app.parts.shadow.decisions
    await cluster.until(lambda: sum(decisions.values()) == 3)
    _, metrics = await cluster.get("/metrics")
    assert 'bayplan_shadow_nodes_in_use{world="real"} 2.0' in metrics
    assert 'bayplan_shadow_nodes_in_use{world="shadow"} 1.0' in metrics
    os.kill(os.getpid(), signal.SIGTERM)
    assert await cluster.exit_code() == 0
    assert [line for line in caplog.messages if line.startswith("what a shadow found hours=")] != []
    assert {seen.method for seen in cluster.server.requests} == {"GET"}
    assert not any("leases" in seen.path for seen in cluster.server.requests)


async def test_a_right_that_is_missing_is_granted_by_the_shadows_role_which_may_not_write(cluster, caplog):
    cluster.server.inject(Refuse(403, "Forbidden"), path=NODES)
    start(cluster, "n1")
    await cluster.until_ready()
    (told,) = (line for line in caplog.messages if line.startswith("permission missing"))
    assert "resource=nodes apiGroup='' grantedBy=manifests/overlays/shadow " in told


async def test_a_pod_of_its_own_profiles_name_that_waits_is_left_to_others(cluster):
    start(cluster, "n1")
    await cluster.until_ready()
    cluster.server.put(PODS, pod("ours"))
    cluster.server.put(PODS, pod("theirs", scheduler=THEIRS))
    bind(cluster, "last", "n1")
    await cluster.until(lambda: cluster.app.parts.shadow.real.cache.sizes().pods == 1)
    assert (cluster.node_of("ours"), cluster.node_of("theirs"), cluster.bindings()) == (None, None, [])


async def test_nodes_and_pods_that_go_leave_both_worlds(cluster):
    start(cluster, "n1", "n2")
    await cluster.until_ready()
    bind(cluster, "first", "n1")
    bind(cluster, "second", "n2")
    worlds = [cluster.app.parts.shadow.real.cache, cluster.app.parts.shadow.shadow.cache]
    await cluster.until(lambda: all(each.sizes().pods == 2 for each in worlds))
    cluster.server.delete(PODS, "default/first")
    cluster.server.delete(NODES, "n2")
    cluster.server.put(NODES, node("n3"))
    await cluster.until(lambda: all((each.sizes().pods, each.has_node("n3")) == (1, True) for each in worlds))
    assert not any(each.has_node("n2") for each in worlds)
