"""Random cases for the allocator: slices, classes, claims and what is taken, as JSON documents."""

import random

NODE, ELSEWHERE = "n1", "n2"
DRIVERS = ("gpu.example.com", "nic.example.com")
_TOLERATIONS = (
    {"operator": "Exists"},
    {"key": "broken", "operator": "Exists"},
    {"key": "broken", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
    {"key": "slow", "operator": "Exists", "effect": "NoExecute"},
)
_TAINTS = (
    {"key": "broken", "value": "yes", "effect": "NoSchedule"},
    {"key": "slow", "effect": "NoExecute"},
    {"key": "noted", "effect": "None"},
    {"key": "later", "effect": "Other"},
)
_POLICIES = (
    {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi", "max": "9Gi"}},
    {"default": "4Gi", "validValues": ["4Gi", "8Gi", "16Gi"]},
    {"default": "1Gi"},
    {"default": "3", "validRange": {"min": "1", "step": "500m"}},
    {"default": "0", "validRange": {"min": "0", "max": "12G", "step": "1G"}},
    {"default": "0", "validValues": ["0", "5G", "10G"]},
)


def random_case(seed):
    """One case, the same for each seed."""
    return _Dice(seed).case()


class _Dice(random.Random):
    def chance(self, probability):
        return self.random() < probability

    def some(self, values, most):
        return self.sample(list(values), self.randint(0, min(most, len(values))))

    def case(self):
        labels = {"zone": self.choice("ab"), "arch": self.choice("xy")}
        drivers = DRIVERS[: self.randint(1, 2)]
        slices = [each for driver in drivers for pool in range(self.randint(1, 3)) for each in self.pool(driver, pool)]
        for number, each in enumerate(slices):
            each["metadata"] = {"name": f"{self.choice('abc')}-{number}"}
        self.shuffle(slices)
        claims = [self.claim(f"claim-{index}") for index in range(self.choice((1, 1, 1, 2, 2, 3)))]
        return {
            "slices": slices,
            "classes": [self.device_class("any", DRIVERS), self.device_class("gpu", DRIVERS[:1])],
            "node": {"metadata": {"name": NODE, "labels": labels}},
            "claims": claims,
            "allocated": self.allocated(slices),
        }

    def pool(self, driver, number):
        where = self.choice(("local", "local", "local", "local", "elsewhere", "all", "selector", "device", "mixed"))
        name = f"pool-{number}"
        generation = 1 if self.chance(0.85) else 2
        pieces = self.choice((1, 1, 2, 3))
        counted = self.chance(0.35)
        sizes = self.chance(0.3), self.chance(0.3), self.chance(0.15), self.chance(0.1)
        slices = []
        names = [f"dev-{index}" for index in range(24)]
        for _ in range(pieces):
            here = self.kind_of_slice(where)
            devices = [
                self.device(names.pop(0), sizes, counted, here == "device")
                for _ in range(self.choice((0, 2, 3, 4, 6, 8)))
            ]
            if devices and self.chance(0.03):
                devices.append(devices[0])
            slices.append({"devices": devices, **self.where(here)})
        if counted:
            counters = {f"c{index}": {"value": self.choice(("3", "4", "6", "20"))} for index in range(2)}
            sets = [{"name": f"set-{index}", "counters": counters} for index in range(2)]
            if self.chance(0.03):
                sets.append(sets[0])
            here = "all" if where == "device" else self.kind_of_slice(where)
            if self.chance(0.2):
                slices.append({"sharedCounters": [sets.pop()], **self.where(here)})
            slices.append({"sharedCounters": sets, **self.where("all" if here == "device" else here)})
        if self.chance(0.03):
            slices.append({"devices": [self.device(names.pop(0), sizes, counted, False)], **self.where("elsewhere")})
            slices[-1]["generation"] = generation + self.choice((0, 1))
        total = len(slices) + (self.choice((-1, 1)) if self.chance(0.05) else 0)
        for each in slices:
            older = generation - 1 if self.chance(0.04) else generation
            each["driver"] = driver
            each["pool"] = {"name": name, "generation": each.pop("generation", older), "resourceSliceCount": total}
        return [{"spec": each} for each in slices]

    def kind_of_slice(self, kind):
        return self.choice(("local", "local", "elsewhere", "all", "selector", "device")) if kind == "mixed" else kind

    def where(self, kind):
        if kind == "selector":
            return {"nodeSelector": self.selector()}
        return {
            "local": {"nodeName": NODE},
            "elsewhere": {"nodeName": ELSEWHERE},
            "all": {"allNodes": True},
            "device": {"perDeviceNodeSelection": True},
        }[kind]

    def selector(self):
        expressions = [{"key": "zone", "operator": "In", "values": self.choice((["a"], ["a", "b"], ["b", "a"]))}]
        if self.chance(0.4):
            expressions.append({"key": "arch", "operator": self.choice(("Exists", "Exists", "DoesNotExist"))})
        term = {"matchExpressions": expressions}
        if self.chance(0.2):
            operator = self.choice(("In", "In", "NotIn"))
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [NODE]}]
        return {"nodeSelectorTerms": [term]}

    def attributes(self):
        values = {
            "model": {"string": self.choice("AAB")},
            "numa": {"int": self.randint(0, 1)},
            "fast": {"bool": self.chance(0.5)},
            "firmware": {"version": self.choice(("1.0.0", "2.0.0"))},
            "index": {"int": self.randint(0, 3)},
        }
        if self.chance(0.1):
            values["numa"] = {"string": "0"}
        if self.chance(0.1):
            values[self.choice(("model", "ports"))] = {"strings": self.choice((["A"], ["A", "B"]))}
        if self.chance(0.1):
            values[self.choice(("index", "ports"))] = self.choice(({"ints": [1, 2]}, {"versions": ["1.0.0"]}))
        if self.chance(0.004):
            values["firmware"] = {"version": "18446744073709551616.0.0"}
        return {
            (key if self.chance(0.8) else f"{DRIVERS[0]}/{key}"): value
            for key, value in values.items()
            if self.chance(0.93)
        }

    def amounts(self, shares):
        made = {"memory": {"value": self.choice(("8Gi", "10Gi", "16Gi"))}}
        if shares and self.chance(0.7):
            made["memory"]["requestPolicy"] = self.choice(_POLICIES)
        if self.chance(0.2):
            made["cores"] = {"value": self.choice(("2", "2500m"))}
        return made

    def consumed(self):
        sets = ["set-9"] if self.chance(0.02) else self.sample(("set-0", "set-1"), self.randint(1, 2))
        made = [
            {"counterSet": each, "counters": {f"c{self.randint(0, 1)}": {"value": self.choice(("1", "2", "1500m"))}}}
            for each in sets
        ]
        if self.chance(0.005):
            made[0]["compatibilityGroups"] = ["one"]
        return made

    def device(self, name, chances, counted, placed):
        shares, tainted, binding, _ = chances
        made = {"name": name, "attributes": self.attributes()}
        if self.chance(0.6):
            made["capacity"] = self.amounts(shares)
        if shares and self.chance(0.7):
            made["allowMultipleAllocations"] = True
        if tainted and self.chance(0.5):
            made["taints"] = self.sample(_TAINTS, self.randint(1, 2))
        if binding and self.chance(0.5):
            made |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
        if self.chance(0.1):
            made["bindsToNode"] = True
        if counted and self.chance(0.8):
            made["consumesCounters"] = self.consumed()
        if placed:
            nodes = ({"nodeName": NODE}, {"nodeName": ELSEWHERE}, {"allNodes": True}, {"nodeSelector": self.selector()})
            made |= self.choice(nodes)
        return made

    def device_class(self, name, drivers):
        selectors = [] if len(drivers) > 1 else [self.expression(f'device.driver == "{drivers[0]}"')]
        if self.chance(0.15):
            selectors.append(self.expression(self.condition()))
        config = [{"opaque": {"driver": DRIVERS[0], "parameters": {"of": name}}}] if self.chance(0.4) else []
        return {"metadata": {"name": name}, "spec": {"selectors": selectors, "config": config}}

    def expression(self, text):
        return {"cel": {"expression": text}}

    def condition(self):
        domain = DRIVERS[0] if self.chance(0.9) else DRIVERS[1]
        attribute = f'device.attributes["{domain}"]'
        name, value = self.choice((("model", '"A"'), ("numa", "0"), ("fast", "true"), ("index", "1"), ("model", '"B"')))
        if self.chance(0.15):
            return self.choice(
                (
                    f'device.capacity["{domain}"].memory.compareTo(quantity("9Gi")) > 0',
                    f'device.capacity["{domain}"].?memory.hasValue() || has({attribute}.numa)',
                    "device.allowMultipleAllocations",
                    f'device.driver != "{domain}"',
                    f'{attribute}.?ports.orValue(["A"]).exists(each, each == "B" || each == 1)',
                    f'type({attribute}.model) != list && {attribute}.model.startsWith("A")',
                    f'{attribute}.?firmware.orValue(semver("2.0.0")).isLessThan(semver("1.5.0"))',
                )
            )
        comparison = f"{attribute}.{name} == {value}"
        if self.chance(0.1):
            comparison = f"{attribute}.index > 0"
        if self.chance(0.93):
            name = "index" if comparison.endswith("> 0") else name
            comparison = f'"{name}" in {attribute} && {comparison}'
        return comparison

    def wanted(self, *, admin):
        made = {"deviceClassName": self.choice(("any", "any", "gpu")), "allocationMode": "ExactCount"}
        made["count"] = self.choice((1, 1, 1, 1, 2, 2, 3, 5))
        if self.chance(0.06):
            made = {**made, "allocationMode": "All", "count": 0}
        made["selectors"] = [self.expression(self.condition()) for _ in range(self.choice((0, 0, 0, 0, 1, 1, 2)))]
        if self.chance(0.3):
            made["tolerations"] = self.some(_TOLERATIONS, 2)
        if self.chance(0.2):
            asked = {"memory": self.choice(("0", "1Gi", "3Gi", "4Gi", "5G", "9Gi", "12Gi", "4500M"))}
            asked |= {"cores": self.choice(("1", "1500m"))} if self.chance(0.15) else {}
            made["capacity"] = {"requests": asked}
        if admin and self.chance(0.1):
            made["adminAccess"] = True
        if self.chance(0.015):
            made |= self.choice(
                (
                    {"deviceClassName": "gone"},
                    {"deviceClassName": ""},
                    {"allocationMode": "Some"},
                    {"count": 33},
                    {"selectors": [{}]},
                    {"capacity": {"requests": {"memory": "-1"}}},
                    {"capacity": {"requests": {"memory": "10E"}}},
                    {"capacity": {"requests": {"cores": "1"}}},
                )
            )
        return made

    def claim(self, name):
        requests, names = [], []
        for index in range(self.choice((1, 1, 2, 2, 3))):
            request = f"r{index}"
            names.append(request)
            if self.chance(0.3):
                subs = [{"name": f"s{each}", **self.wanted(admin=False)} for each in range(self.randint(1, 3))]
                if self.chance(0.1):
                    subs[0]["count"] = self.choice((20, 32))
                requests.append({"name": request, "firstAvailable": subs})
                names.append(f"{request}/s0")
            else:
                requests.append({"name": request, "exactly": self.wanted(admin=True)})
        devices = {"requests": requests}
        if self.chance(0.3):
            devices["constraints"] = [self.constraint(names) for _ in range(self.randint(1, 2))]
        if self.chance(0.3):
            devices["config"] = [
                {"requests": self.some(names, 3), "opaque": {"driver": DRIVERS[0], "parameters": {"x": each}}}
                for each in range(self.randint(1, 2))
            ]
        return {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {"devices": devices}}

    def constraint(self, names):
        if self.chance(0.02):
            return {}
        attribute = self.choice(("model", "numa", "fast", "index", "firmware", "ports"))
        kind = self.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        domain = DRIVERS[0] if self.chance(0.9) else DRIVERS[1]
        return {kind: f"{domain}/{attribute}", "requests": self.some(names, 2)}

    def allocated(self, slices):
        results = []
        busy = self.choice((0, 0, 0.1, 0.4))
        for each in slices:
            spec = each["spec"]
            for device in spec.get("devices", ()):
                if self.chance(busy):
                    found = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"]}
                    found["device"] = device["name"]
                    if self.chance(0.05):
                        found["adminAccess"] = True
                    if bool(device.get("allowMultipleAllocations")) is self.chance(0.95):
                        found["shareID"] = f"share-{len(results)}"
                        if self.chance(0.9):
                            found["consumedCapacity"] = {
                                self.choice(("memory", "memory", "cores")): self.choice(("1Gi", "2Gi", "1"))
                            }
                    results.append(found)
        return [{"devices": {"results": [each]}} for each in results]
