import pytest
from tests.client.fake_cluster import FakeCluster
from tests.live.live_scene import LiveScene
from tests.server.secure_scene import secure_port

from bayplan.api.live_paths import SIMULATE
from bayplan.server.live import live_routes

MAY = {
    ("get", "/bayplan/v1/summary"),
    ("get", "/bayplan/v1/nodes"),
    ("get", "/bayplan/v1/nodes/n1"),
    ("get", "/bayplan/v1/queue"),
    ("get", "/bayplan/v1/decisions"),
    ("get", "/bayplan/v1/namespaces/default/pods/big/explanation"),
    ("get", "/bayplan/v1/namespaces/default/pods/nobody/explanation"),
    ("post", SIMULATE),
}


@pytest.fixture
async def scheduler():
    """A scheduler with a node and a pod that is too large for it, behind a secure port."""
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.pod("big", cpu="5")
    await scene.attempt()
    async with secure_port(routes=live_routes(scene.inspector), may=MAY) as port:
        yield port


@pytest.fixture
async def cluster(scheduler):
    async with FakeCluster(port=scheduler.port) as made:
        made.lease("bayplan-7f-x2_0b5e")
        made.account("reader-token")
        yield made


@pytest.fixture
def kubeconfig(cluster, tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: '{cluster.url}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {token: admins-own}}]\n"
    )
    return file
