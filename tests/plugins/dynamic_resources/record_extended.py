"""Records what requests kube-scheduler makes of extended resources.

`python -m tests.plugins.dynamic_resources.record_extended` has it place random pods that ask for devices by either name
of a class. Those that were not bound are left out.
"""

import json
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.devices import device_class, resource_slice
from e2e.controlplane.objects import container, node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import end_pod

DATA: Final = Path(__file__).parent / "data" / "extended_requests.json"
RESOURCES: Final = ("nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu")
CASES: Final = 48
NAMESPACE: Final = "default"


def containers_of(dice: random.Random, name: str, count: int, **fields: object) -> list[Object]:
    """Returns containers, of which some ask for devices; `fields` are of half of them."""
    made = []
    for index in range(count):
        amounts: dict[str, object] = {"cpu": "1m"}
        amounts |= {each: str(amount) for each in RESOURCES if (amount := dice.choice((0, 1, 2, 3, 5)))}
        made.append(container(amounts, f"{name}{index}", **(fields if dice.random() < 0.4 else {})))
    return made


def answer(client: ApiClient, name: str, spec: Object) -> Object | None:
    """Returns what kube-scheduler made for a pod; None where it did not bind it."""
    made = pod(name, NAMESPACE, scheduler="kube")
    client.create("pods", {**made, "spec": {**made["spec"], **spec}})
    with suppress(TimeoutError):
        wait_until(lambda: client.get("pods", name, NAMESPACE)["spec"].get("nodeName"), "bind", timeout_seconds=4)
        told = client.get("pods", name, NAMESPACE)["status"].get("extendedResourceClaimStatus", {})
        claims = client.list("resourceclaims", NAMESPACE)
        requests = [each for claim in claims for each in claim["spec"]["devices"]["requests"]]
        asked = {kind: [_asked(each) for each in spec[kind]] for kind in ("initContainers", "containers")}
        return {**asked, "requests": requests, "mappings": told.get("requestMappings", [])}
    return None


def _asked(made: Object) -> Object:
    """Returns what of a container decides."""
    kept = {key: made[key] for key in ("name", "restartPolicy") if key in made}
    return {**kept, "resources": {"requests": made["resources"]["requests"]}}


def clear(client: ApiClient, name: str) -> None:
    """Deletes the pod and its claim."""
    end_pod(client, NAMESPACE, name)
    for claim in client.list("resourceclaims", NAMESPACE):
        client.patch(
            "resourceclaims", claim["metadata"]["name"], {"metadata": {"finalizers": None}}, namespace=NAMESPACE
        )
    client.delete_all("resourceclaims", NAMESPACE)


def main() -> int:
    """Records the cases anew."""
    dice, cases, started = random.Random(7), [], time.monotonic()
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        client = plane.client
        client.create("nodes", node("n"))
        client.create("deviceclasses", device_class(extendedResourceName=RESOURCES[0]))
        client.create("resourceslices", resource_slice("n", 64))
        plane.start_kube_scheduler({"profiles": [{"schedulerName": "kube"}]})
        for number in range(CASES):
            inits = containers_of(dice, "init", dice.randrange(5), restartPolicy="Always")
            spec: Object = {"initContainers": inits, "containers": containers_of(dice, "main", dice.randrange(1, 3))}
            found = answer(client, f"p{number}", spec)
            cases += [] if found is None else [found]
            clear(client, f"p{number}")
    DATA.write_text("[\n" + ",\n".join(json.dumps(each, separators=(",", ":")) for each in cases) + "\n]\n")
    print(f"{len(cases)} of {CASES} cases in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
