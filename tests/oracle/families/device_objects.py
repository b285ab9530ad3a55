"""Devices, their classes and what is asked of them, for the family about dynamic resources."""

from collections.abc import Sequence

from tests.oracle.case import Object
from tests.oracle.dice import Dice
from tests.oracle.families.parts import ADMIN_NAMESPACE, ZONE
from tests.oracle.profiles import GPU

GPUS, NICS = "gpu.example.com", "nic.example.com"
_POLICIES: tuple[Object, ...] = (
    {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi", "max": "7Gi"}},
    {"default": "4Gi", "validValues": ["4Gi", "8Gi"]},
    {"default": "1Gi"},
)
_TAINTS: tuple[Object, ...] = (
    {"key": "broken", "value": "yes", "effect": "NoSchedule"},
    {"key": "slow", "effect": "NoExecute"},
    {"key": "noted", "effect": "None"},
)
_TOLERATIONS: tuple[Object, ...] = (
    {"operator": "Exists"},
    {"key": "broken", "operator": "Exists"},
    {"key": "broken", "value": "yes", "effect": "NoSchedule"},
    {"key": "slow", "operator": "Exists", "effect": "NoExecute"},
)


class Devices:
    """The devices of a cluster, and claims on them; `objects` has what was made so far."""

    def __init__(self, dice: Dice, cluster: list[Object]) -> None:
        self._dice = dice
        # What selectors said of a device and of a node, by its name, counts in kube-scheduler's scores until it ends.
        self._stem, self._scene = f"dev-{dice.case}", f"scene-{dice.case}"
        self._nodes = [each["metadata"]["name"] for each in cluster]
        self._shared = dice.maybe(0.35)
        self._tainted = dice.maybe(0.3)
        self._slices: list[Object] = []
        self.objects: list[Object] = [self._class("any"), self._class("gpu", GPUS, 0.7)]

    def publish(self) -> None:
        """Adds the slices of a pool for most nodes, and of pools that several nodes reach, and rules that taint."""
        dice = self._dice
        for node in self._nodes:
            if dice.maybe(0.85):
                self._pool(GPUS, node, {"nodeName": node})
        if dice.maybe(0.4):
            self._pool(NICS, "fabric", {"allNodes": True})
        if dice.maybe(0.4):
            self._pool(dice.choice((GPUS, NICS)), "zone", {"nodeSelector": self._selector()})
        if dice.maybe(0.25):
            self._pool(GPUS, "chosen", {"perDeviceNodeSelection": True})
        numbers = dice.sample(range(len(self._slices)), len(self._slices))
        for number, each in zip(numbers, self._slices, strict=True):
            self.objects.append({"kind": "ResourceSlice", "metadata": {"name": f"s{number}"}, "spec": each})
        if dice.maybe(0.2):
            chosen = {"driver": dice.choice((GPUS, NICS))}
            if dice.maybe(0.6):
                chosen["device"] = f"{self._stem}-{dice.randrange(4)}"
            spec = {"deviceSelector": chosen, "taint": dice.choice(_TAINTS)}
            self.objects.append({"kind": "DeviceTaintRule", "metadata": {"name": "rule"}, "spec": spec})

    def take(self, chance: float) -> None:
        """Adds claims of others, each with one device; nobody may use some of them."""
        dice = self._dice
        for spec in self._slices:
            for device in spec.get("devices", ()):
                if dice.maybe(chance):
                    name = f"taken-{len(self.objects)}"
                    user = {"resource": "pods", "name": "user", "uid": f"user-{name}"}
                    self._allocated(name, "grey", spec, device, [user] if dice.maybe(0.7) else [])

    def shared_claim(self, namespace: str) -> str:
        """Adds a claim that pods name, some with a device already; returns its name."""
        dice, name = self._dice, f"claim-{len(self.objects)}"
        local = [(spec, device) for spec in self._slices for device in spec.get("devices", ())]
        if local and dice.maybe(0.3):
            self._allocated(name, namespace, *dice.choice(local), [])
        else:
            claim = {"metadata": {"name": name, "namespace": namespace}, "spec": self._claim(namespace)}
            self.objects.append({"kind": "ResourceClaim", **claim})
        return name

    def template(self, namespace: str) -> str:
        """Adds a template of claims; returns its name."""
        name = f"template-{len(self.objects)}"
        made = {"metadata": {"name": name, "namespace": namespace}, "spec": {"spec": self._claim(namespace)}}
        self.objects.append({"kind": "ResourceClaimTemplate", **made})
        return name

    def _pool(self, driver: str, name: str, where: Object) -> None:
        dice = self._dice
        by_device, counted = "perDeviceNodeSelection" in where, dice.maybe(0.3)
        names = [f"{self._stem}-{index}" for index in range(24)]
        slices: list[Object] = [
            {"devices": [self._device(names.pop(0), counted, by_device) for _ in range(dice.randint(2, 6))], **where}
            for _ in range(dice.choice((1, 1, 1, 2)))
        ]
        if counted:
            counters = {f"c{index}": {"value": dice.choice(("3", "4", "6"))} for index in range(2)}
            sets = [{"name": f"set-{index}", "counters": counters} for index in range(2)]
            slices.append({"sharedCounters": sets, **({"allNodes": True} if by_device else where)})
        if len(slices) > 1 and dice.maybe(0.06) and "devices" in slices[1]:
            slices[1]["devices"].append(dict(slices[0]["devices"][0]))
        count = len(slices) + (1 if dice.maybe(0.06) else 0)
        for each in slices:
            generation = 1 if dice.maybe(0.04) else 2
            each |= {"driver": driver, "pool": {"name": name, "generation": generation, "resourceSliceCount": count}}
        self._slices += slices

    def _device(self, name: str, counted: bool, by_device: bool) -> Object:
        dice = self._dice
        values: Object = {
            "model": {"string": dice.choice("AAB")},
            "numa": {"int": dice.randint(0, 1)},
            "fast": {"bool": dice.maybe(0.5)},
            "firmware": {"version": dice.choice(("1.0.0", "2.0.0"))},
            "index": {"int": dice.randint(0, 3)},
        }
        attributes = {
            key if dice.maybe(0.85) else f"{GPUS}/{key}": value for key, value in values.items() if dice.maybe(0.95)
        }
        made: Object = {"name": name, "attributes": attributes}
        if dice.maybe(0.6):
            made["capacity"] = {"memory": {"value": dice.choice(("8Gi", "10Gi", "16Gi"))}}
        if self._shared and dice.maybe(0.7):
            made["allowMultipleAllocations"] = True
            if "capacity" in made and dice.maybe(0.7):
                made["capacity"]["memory"]["requestPolicy"] = dice.choice(_POLICIES)
        if self._tainted and dice.maybe(0.5):
            made["taints"] = dice.some(_TAINTS, 1, 2)
        if counted and dice.maybe(0.8):
            sets = ["set-9"] if dice.maybe(0.02) else dice.some(("set-0", "set-1"), 1, 2)
            amounts = {f"c{dice.randint(0, 1)}": {"value": dice.choice(("1", "2", "1500m"))}}
            made["consumesCounters"] = [{"counterSet": each, "counters": amounts} for each in sets]
        if by_device:
            node = {"nodeName": dice.choice(self._nodes)}
            made |= dice.choice((node, node, {"allNodes": True}, {"nodeSelector": self._selector()}))
        return made

    def _selector(self) -> Object:
        zones = self._dice.some(("z0", "z1", "z2"), 1, 2)
        expressions: list[Object] = [{"key": ZONE, "operator": "In", "values": zones}]
        expressions.append({"key": self._scene, "operator": "DoesNotExist"})
        if self._dice.maybe(0.3):
            expressions.append({"key": "disk", "operator": "Exists"})
        return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}

    def _class(self, name: str, driver: str | None = None, extended: float = 0.0) -> Object:
        selectors = [] if driver is None else [_selector(f'device.driver == "{driver}"')]
        if self._dice.maybe(0.08):
            selectors.append(_selector(self._condition()))
        spec: Object = {"selectors": selectors}
        if self._dice.maybe(0.4):
            spec["config"] = [{"opaque": {"driver": GPUS, "parameters": {"of": name}}}]
        if self._dice.maybe(extended):
            spec["extendedResourceName"] = GPU
        return {"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}

    def _condition(self) -> str:
        dice = self._dice
        attributes = f'device.attributes["{GPUS if dice.maybe(0.9) else NICS}"]'
        name, test = dice.choice(
            (("model", '== "A"'), ("numa", "== 0"), ("fast", "== true"), ("index", "> 0"), ("model", '== "B"'))
        )
        guard = f'"{name}" in {attributes} && ' if dice.maybe(0.97) else ""
        return f"{guard}{attributes}.{name} {test}"

    def _wanted(self, *, admin: bool = False) -> Object:
        dice = self._dice
        made: Object = {"deviceClassName": dice.choice(("any", "gpu", "gpu"))}
        if dice.maybe(0.08):
            made["allocationMode"] = "All"
        else:
            made["count"] = dice.choice((1, 1, 1, 1, 2, 2, 3))
        if dice.maybe(0.02):
            made["deviceClassName"] = "gone"
        selectors = [_selector(self._condition()) for _ in range(dice.choice((0, 0, 0, 0, 0, 1, 1, 2)))]
        if selectors:
            made["selectors"] = selectors
        if dice.maybe(0.3):
            made["tolerations"] = dice.some(_TOLERATIONS, 1, 2)
        if dice.maybe(0.2):
            made["capacity"] = {"requests": {"memory": dice.choice(("1Gi", "3Gi", "4Gi", "5G", "9Gi", "12Gi"))}}
        if admin and dice.maybe(0.2):
            made["adminAccess"] = True
        return made

    def _claim(self, namespace: str) -> Object:
        dice = self._dice
        requests: list[Object] = []
        names: list[str] = []
        for index in range(dice.choice((1, 1, 1, 1, 2, 3))):
            request = f"r{index}"
            names.append(request)
            if dice.maybe(0.3):
                subs = [{"name": f"s{each}", **self._wanted()} for each in range(dice.randint(1, 3))]
                requests.append({"name": request, "firstAvailable": subs})
                names.append(f"{request}/s0")
            else:
                requests.append({"name": request, "exactly": self._wanted(admin=namespace == ADMIN_NAMESPACE)})
        devices: Object = {"requests": requests}
        if dice.maybe(0.2):
            devices["constraints"] = [self._constraint(names) for _ in range(dice.randint(1, 2))]
        if dice.maybe(0.3):
            parameters = {"opaque": {"driver": GPUS, "parameters": {"x": 1}}}
            devices["config"] = [{"requests": dice.some(names, 0, 2), **parameters}]
        return {"devices": devices}

    def _constraint(self, names: Sequence[str]) -> Object:
        dice = self._dice
        kind = dice.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        attribute = dice.choice(("model", "numa", "fast", "index", "firmware"))
        return {kind: f"{GPUS}/{attribute}", "requests": dice.some(names, 0, 2)}

    def _allocated(self, name: str, namespace: str, spec: Object, device: Object, users: list[Object]) -> None:
        """Adds a claim that has one device, as a scheduler leaves it."""
        requests = [{"name": "r", "exactly": {"deviceClassName": "any", "count": 1}}]
        result: Object = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"]}
        result["device"] = device["name"]
        if device.get("allowMultipleAllocations"):
            result["shareID"] = f"00000000-0000-4000-8000-{len(self.objects):012}"
            if "capacity" in device:
                result["consumedCapacity"] = {"memory": self._dice.choice(("1Gi", "2Gi", "4Gi"))}
        allocation: Object = {"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
        if node := spec.get("nodeName") or device.get("nodeName"):
            field = {"key": "metadata.name", "operator": "In", "values": [node]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        elif "nodeSelector" in spec:
            allocation["nodeSelector"] = spec["nodeSelector"]
        status: Object = {"allocation": allocation}
        if users:
            status["reservedFor"] = users
        metadata = {
            "name": name,
            "namespace": namespace,
            "finalizers": ["resource.kubernetes.io/delete-protection"],
        }
        claim = {"metadata": metadata, "spec": {"devices": {"requests": requests}}, "status": status}
        self.objects.append({"kind": "ResourceClaim", **claim})


def _selector(expression: str) -> Object:
    return {"cel": {"expression": expression}}
