"""Pods that claim devices: from templates, shared, and where others have devices already."""

from tests.oracle.case import Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts
from tests.oracle.families.device_objects import Devices

EXTENDED_RESOURCES = False
"""Whether some pods ask for devices by an extended resource; off until these are allocated."""


def generate(dice: Dice) -> Scene:
    """Nodes with devices, of which some are taken, and pods with one claim or two."""
    cluster = parts.nodes(dice, 2, 5)
    devices = Devices(dice, cluster)
    devices.publish()
    devices.take(dice.choice((0.0, 0.1, 0.3)))
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 6))]
    shared: dict[str, str] = {}
    for each in incoming:
        namespace = each["metadata"]["namespace"]
        if dice.maybe(0.15):
            parts.requests(dice, each)
        if dice.maybe(0.1):
            each["spec"]["nodeSelector"] = {"disk": dice.choice(parts.DISKS)}
        if EXTENDED_RESOURCES and dice.maybe(0.2):
            wanted = {f"deviceclass.resource.kubernetes.io/{dice.choice(('any', 'gpu'))}": dice.choice(("1", "2"))}
            each["spec"]["containers"][0]["resources"] = {"requests": wanted, "limits": wanted}
        entries = each["spec"]["resourceClaims"] = []
        for index in range(dice.choice((1, 1, 1, 2))):
            if dice.maybe(0.3):
                if namespace not in shared or dice.maybe(0.5):
                    shared[namespace] = devices.shared_claim(namespace)
                source = {"resourceClaimName": shared[namespace]}
            else:
                source = {"resourceClaimTemplateName": devices.template(namespace)}
            # kube-scheduler tries for ever where two entries name one claim.
            if source not in [{key: entry[key] for key in entry if key != "name"} for entry in entries]:
                entries.append({"name": f"e{index}", **source})
    return Scene(devices.objects, cluster, [], incoming)
