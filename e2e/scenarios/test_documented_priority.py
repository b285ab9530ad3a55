"""What the documentation says of priority and preemption, where the API server or the controllers take part.

No kubelet runs, so victims with a grace period end exactly when a test says so.
"""

import pytest
from e2e.conftest import RunBayplan, StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, ApiError
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import node, pod_of_class
from e2e.controlplane.plane import ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.conftest import CreateClass
from e2e.scenarios.outcomes import fill_nodes, nodes_bound, wait_bound, wait_nominated, wait_refused

pytestmark = pytest.mark.controlplane


@pytest.mark.usefixtures("priority_classes")
def test_a_node_that_becomes_available_while_victims_end_is_used_instead_of_the_nominated_one(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    fill_nodes(client, namespace, "n1")
    client.create("pods", pod_of_class("high", namespace, "high"))
    wait_nominated(client, namespace, "high", "n1")
    client.create("nodes", node("n2", cpu="1"))
    assert wait_bound(client, namespace, ["high"]) == {"high": "n2"}
    victim = client.get("pods", "low-n1-0", namespace)
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 30


@pytest.mark.usefixtures("priority_classes")
def test_victims_without_a_grace_period_make_room_at_once(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    fill_nodes(client, namespace, "n1", grace_seconds=0)
    client.create("pods", pod_of_class("high", namespace, "high"))
    assert wait_bound(client, namespace, ["high"]) == {"high": "n1"}
    assert nodes_bound(client, namespace) == {"high": "n1"}


@pytest.mark.usefixtures("priority_classes")
def test_a_pod_of_a_class_that_never_preempts_waits_until_room_comes_by_itself(
    client: ApiClient, namespace: str, bayplan: BayplanProcess, create_class: CreateClass
) -> None:
    create_class("patient", 1000, preemptionPolicy="Never")
    fill_nodes(client, namespace, "n1")
    created = client.create("pods", pod_of_class("waiting", namespace, "patient"))
    assert (created["spec"]["priority"], created["spec"]["preemptionPolicy"]) == (1000, "Never")
    message = wait_refused(client, namespace, "waiting")["message"]
    assert message.endswith("preemption: not eligible due to preemptionPolicy=Never.")
    assert "deletionTimestamp" not in client.get("pods", "low-n1-0", namespace)["metadata"]
    client.delete("pods", "low-n1-0", namespace=namespace, grace_seconds=0)
    assert wait_bound(client, namespace, ["waiting"]) == {"waiting": "n1"}


def test_a_pod_preempts_lower_priority_unless_its_class_says_otherwise(
    client: ApiClient, namespace: str, priority_classes: None
) -> None:
    created = client.create("pods", pod_of_class("plain", namespace, "high"))
    assert created["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


def test_only_one_class_may_be_the_global_default(client: ApiClient, create_class: CreateClass) -> None:
    create_class("first-default", 5, globalDefault=True)

    def refused() -> bool:
        # The API server's admission hears of the first class by a watch.
        try:
            create_class("second-default", 6, globalDefault=True)
        except ApiError as error:
            return "first-default is already marked as default" in str(error)
        client.delete("priorityclasses", "second-default")
        return False

    wait_until(refused, "the refusal of a second default")


@pytest.mark.parametrize("value", [-(2**31), -1, 0, 1_000_000_000])
def test_a_class_may_have_any_32_bit_value_up_to_one_billion_and_any_description(
    create_class: CreateClass, value: int
) -> None:
    created = create_class("any", value, description="✓ value: 7\n")
    assert (created.get("value", 0), created["description"]) == (value, "✓ value: 7\n")
    assert "namespace" not in created["metadata"]


@pytest.mark.parametrize("value", [-(2**31) - 1, 2**31])
def test_a_value_of_more_than_32_bits_is_refused(create_class: CreateClass, value: int) -> None:
    with pytest.raises(ApiError) as refusal:
        create_class("too-wide", value)
    assert refusal.value.status in {400, 422}


def test_the_pods_of_a_deployment_have_the_priority_of_its_template_and_preempt(
    start_control_plane: StartControlPlane, run_bayplan: RunBayplan
) -> None:
    plane = start_control_plane(ControlPlaneOptions(kube_controller_manager=True))
    client = plane.client
    wait_until(lambda: client.list("serviceaccounts", "default"), "the default service account")
    for name, value in (("low", 1), ("high", 1000)):
        client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    fill_nodes(client, "default", "n1", grace_seconds=0)
    wait_until(lambda: not client.get("nodes", "n1")["spec"].get("taints"), "the node's taint to go")
    run_bayplan(kubeconfig=install_bayplan(plane))

    template = pod_of_class("web", "default", "high")
    labels = {"app": "web"}
    deployment = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }
    client.create("deployments", deployment)
    bound = wait_until(lambda: [n for n in nodes_bound(client, "default") if n.startswith("web-")], "the web pod")
    assert client.get("pods", bound[0], "default")["spec"]["priority"] == 1000
    assert nodes_bound(client, "default") == {bound[0]: "n1"}
