"""Storage objects of one scene, named so that no two scenes share a name."""

from tests.oracle.case import Object
from tests.oracle.dice import Dice
from tests.oracle.families import parts

DRIVERS = ("fast.example.com", "slow.example.com")
# Drivers that succeeded a plugin of Kubernetes itself.
_SUCCESSORS = {
    "pd.csi.storage.gke.io": "kubernetes.io/gce-pd",
    "ebs.csi.aws.com": "kubernetes.io/aws-ebs",
    "disk.csi.azure.com": "kubernetes.io/azure-disk",
}
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_SIZES = ("1Gi", "5Gi", "20Gi", "7G")
_DELAYED = ("local", "fast-late", "slow-late", "picky-late", "old-late")


class Storage:
    """Makes claims and volumes over a cluster; `objects` holds what was made."""

    def __init__(self, dice: Dice, cluster: list[Object]) -> None:
        self._dice = dice
        self._cluster = cluster
        # Volumes outlive a scene for a moment while the scheduler gives up waiting for them.
        self._mark = f"{dice.getrandbits(24):06x}"
        self._count = 0
        self._shared: dict[str, list[str]] = {}
        self._volumes: list[str] = []
        self._drivers: dict[str, Object] = {}
        self.objects: list[Object] = []

    def name_of(self, stem: str) -> str:
        """The stem with this scene's mark."""
        return f"{stem}-{self._mark}"

    def _next(self, stem: str) -> str:
        self._count += 1
        return self.name_of(f"{stem}{self._count}")

    def add_classes(self) -> None:
        """A class of each kind: for volumes made by hand, by drivers at once or late, and only in some zones."""
        for name, provisioner, mode in (
            ("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            ("fast-late", DRIVERS[0], "WaitForFirstConsumer"),
            ("slow-late", DRIVERS[1], "WaitForFirstConsumer"),
            ("picky-late", DRIVERS[1], "WaitForFirstConsumer"),
            ("old-late", "kubernetes.io/aws-ebs", "WaitForFirstConsumer"),
            ("fast-now", DRIVERS[0], "Immediate"),
        ):
            found: Object = {"kind": "StorageClass", "metadata": {"name": self.name_of(name)}}
            found |= {"provisioner": provisioner, "volumeBindingMode": mode}
            if name == "picky-late" or (name == "old-late" and self._dice.maybe(0.5)):
                found["allowedTopologies"] = self._topologies()
            self.objects.append(found)

    def _topologies(self) -> list[Object]:
        zones = {"key": parts.ZONE, "values": self._dice.some(("z0", "z1", "z2"), 1, 2)}
        disks = {"key": "disk", "values": self._dice.some(parts.DISKS, 1, 2)}
        terms = self._dice.choice(([[zones]], [[zones, disks]], [[zones], [disks]]))
        return [{"matchLabelExpressions": term} for term in terms]

    def add_free_volumes(self, count: int) -> None:
        """Volumes that wait for a claim; no two are of one size, as kube-scheduler takes any of several equal ones."""
        for index in range(count):
            volume = self._volume(self._dice.choice(("local", "local", "fast-late", "")))
            volume["spec"]["capacity"]["storage"] = f"{self._dice.choice((1, 5, 7, 20)) * 1024 + index}Mi"
            volume["spec"]["accessModes"] = self._dice.some(("ReadWriteOnce", "ReadOnlyMany"), 1, 2)
            volume["status"] = {"phase": self._dice.choice(("Available", "Available", "Available", "Released"))}
            if self._dice.maybe(0.4):
                volume["metadata"]["labels"] = {"grade": self._dice.choice(("gold", "tin"))}
            if self._dice.maybe(0.1):
                claim = {"namespace": self._dice.choice(parts.NAMESPACES), "name": self.name_of("elsewhere")}
                volume["spec"]["claimRef"] = claim
            if self._dice.maybe(0.1):
                volume["spec"]["volumeMode"] = "Block"
            self.objects.append(volume)

    def _driver(self, name: str) -> Object:
        """What the CSIDriver of that name says."""
        if name not in self._drivers:
            self._drivers[name] = {}
            self.objects.append({"kind": "CSIDriver", "metadata": {"name": name}, "spec": self._drivers[name]})
        return self._drivers[name]

    def add_capacities(self) -> None:
        """Drivers that tell where they have room, and where that is.

        No node has two of a class that are large enough, as kube-scheduler takes any of several.
        """
        dice = self._dice
        self._driver(DRIVERS[1])["storageCapacity"] = dice.maybe(0.85)
        for class_name in ("slow-late", "picky-late"):
            everywhere = dice.maybe(0.2)
            for zone in (None,) if everywhere else dice.some(("z0", "z1", "z2"), 0, 3):
                selector = {} if zone is None else {"matchLabels": {parts.ZONE: zone}}
                self._add_capacity(class_name, selector, dice.choice(("3Gi", "10Gi", "50Gi", "100Gi")))
                if dice.maybe(0.3):
                    self._add_capacity(class_name, selector, "0")
            if dice.maybe(0.3):
                self._add_capacity(class_name, None, "100Gi")

    def _add_capacity(self, class_name: str, selector: Object | None, amount: str) -> None:
        found: Object = {
            "kind": "CSIStorageCapacity",
            "metadata": {"name": self._next("room"), "namespace": self._dice.choice(parts.NAMESPACES)},
            "storageClassName": self.name_of(class_name),
            "capacity": amount,
        }
        if selector is not None:
            found["nodeTopology"] = selector
        if amount != "0" and self._dice.maybe(0.3):
            found["maximumVolumeSize"] = self._dice.choice(("2Gi", "50Gi"))
        self.objects.append(found)

    def add_volumes_of_nodes(self) -> None:
        """Volumes that only one node can use, no two of one size."""
        for index, node in enumerate(self._cluster):
            for number in range(self._dice.randint(1, 3)):
                volume = self._volume("local")
                name = {"key": parts.HOSTNAME, "operator": "In", "values": [node["metadata"]["name"]]}
                volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [name]}]}}
                size = self._dice.choice((6, 9, 20, 70)) * 1024 + 3 * index + number
                volume["spec"]["capacity"]["storage"] = f"{size}Mi"
                volume["status"] = {"phase": "Available"}
                self.objects.append(volume)

    def add_space(self) -> None:
        """A driver that has room for new volumes in every zone, more in some than in others."""
        self._driver(DRIVERS[1])["storageCapacity"] = True
        for class_name in ("slow-late", "picky-late"):
            for zone in ("z0", "z1", "z2", "z3"):
                amount = self._dice.choice(("21Gi", "30Gi", "64Gi", "200Gi", "999Gi"))
                self._add_capacity(class_name, {"matchLabels": {parts.ZONE: zone}}, amount)

    def late_claim(self, namespace: str) -> str:
        """The name of a new claim that waits for its first consumer."""
        name = self._next("claim")
        found = self._claim(name, namespace, self._dice.choice(("local", "local", "slow-late", "slow-late", *_DELAYED)))
        self.objects.append(found)
        return name

    def add_csi_nodes(self, *, most: int) -> None:
        """Drivers on most nodes, each with a limit, with a limit of none, or without a limit.

        At most one wants to be on the node of its pods, as kube-scheduler names any of several that are missing.
        """
        dice = self._dice
        if dice.maybe(0.4):
            self._driver(dice.choice((*DRIVERS, *_SUCCESSORS)))["preventPodSchedulingIfMissing"] = True
        for node in self._cluster:
            if dice.maybe(0.1):
                continue
            name = node["metadata"]["name"]
            drivers: list[Object] = []
            for driver in dice.some((*DRIVERS, *_SUCCESSORS), 1, 5):
                found: Object = {"name": driver, "nodeID": name}
                if dice.maybe(0.85):
                    found["allocatable"] = {"count": dice.randint(0 if dice.maybe(0.1) else 1, most)}
                drivers.append(found)
            metadata: Object = {"name": name}
            if dice.maybe(0.7):
                metadata["annotations"] = {_MIGRATED: ",".join(dice.some(list(_SUCCESSORS.values()), 1, 3))}
            self.objects.append({"kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}})

    def add_attachments(self) -> None:
        """Volumes that a driver has attached, whether a pod uses them there or not."""
        for volume in self._dice.some(self._volumes, 0, 3) if self._volumes else ():
            source = {"persistentVolumeName": volume}
            node = self._dice.choice(self._cluster)["metadata"]["name"]
            spec = {"attacher": self._dice.choice(DRIVERS), "nodeName": node, "source": source}
            metadata = {"name": self._next("attached")}
            self.objects.append({"kind": "VolumeAttachment", "metadata": metadata, "spec": spec})

    def bound_claim(self, namespace: str, *, on: str | None = None) -> str:
        """The name of a new claim with a volume; nodes `on` which a pod has it can always reach it."""
        dice = self._dice
        name = self._next("claim")
        volume = self._volume("fast-now")
        if on is not None or dice.maybe(0.4):
            volume["spec"].pop("nodeAffinity", None)
        if on is None and dice.maybe(0.35):
            key = dice.choice((parts.ZONE, parts.ZONE, parts.REGION))
            values = ("z0", "z1", "z0__z2", "z9") if key == parts.ZONE else ("r0", "r1")
            volume["metadata"]["labels"] = {key: dice.choice(values)}
        volume["spec"]["claimRef"] = {"namespace": namespace, "name": name}
        volume["status"] = {"phase": "Bound"}
        mode = "ReadWriteOncePod" if dice.maybe(0.25) else dice.choice(("ReadWriteOnce", "ReadWriteMany"))
        volume["spec"]["accessModes"] = [mode]
        claim = self._claim(name, namespace, "fast-now", mode)
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        claim["status"] = {"phase": "Bound"}
        if on is None and dice.maybe(0.05):
            self.objects.append(claim)  # and its volume is gone
        else:
            self.objects += [volume, claim]
            self._volumes.append(volume["metadata"]["name"])
        self._shared.setdefault(namespace, []).append(name)
        return name

    def shared_claim(self, namespace: str) -> str | None:
        """A bound claim that was made before; None while there is none."""
        names = self._shared.get(namespace)
        return self._dice.choice(names) if names else None

    def any_claim(self, namespace: str) -> str:
        """The name of a claim in whatever state."""
        dice = self._dice
        kind = dice.choice(("bound",) * 4 + ("shared",) * 2 + ("late",) * 7 + ("unbound", "missing", "lost", "half"))
        if kind == "shared":
            return self.shared_claim(namespace) or self.bound_claim(namespace)
        if kind == "bound":
            return self.bound_claim(namespace)
        name = self._next("claim")
        if kind == "missing":
            return name
        claim = self._claim(name, namespace, dice.choice(_DELAYED) if kind == "late" else "fast-now")
        if kind == "lost":
            claim["spec"]["volumeName"] = self.name_of("gone")
            claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            claim["status"] = {"phase": "Lost"}
        if kind == "half":
            claim["spec"]["volumeName"] = self.name_of("soon")
        if kind == "late":
            if dice.maybe(0.2):
                claim["spec"]["selector"] = {"matchLabels": {"grade": dice.choice(("gold", "tin"))}}
            if dice.maybe(0.08):
                claim["spec"]["volumeMode"] = "Block"
            if dice.maybe(0.08):
                node = dice.choice(self._cluster)["metadata"]["name"]
                claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": node}
        self.objects.append(claim)
        return name

    def add_stranger(self, namespace: str, name: str) -> None:
        """A claim that belongs to no pod."""
        self.objects.append(self._claim(name, namespace, "fast-late"))

    def _claim(self, name: str, namespace: str, storage_class: str, mode: str = "ReadWriteOnce") -> Object:
        return {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": [mode],
                "storageClassName": self.name_of(storage_class),
                "resources": {"requests": {"storage": self._dice.choice(_SIZES)}},
            },
        }

    def _volume(self, storage_class: str) -> Object:
        dice = self._dice
        name = self._next("volume")
        spec: Object = {
            "capacity": {"storage": dice.choice(_SIZES)},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": self.name_of(storage_class) if storage_class else "",
        }
        sources: list[Object] = [{"csi": {"driver": dice.choice(DRIVERS), "volumeHandle": f"handle-{name}"}}]
        if storage_class == "fast-now" and dice.maybe(0.3):
            sources = [
                {"gcePersistentDisk": {"pdName": f"disk-{name}"}},
                {"awsElasticBlockStore": {"volumeID": f"vol-{name}"}},
                {"azureDisk": {"diskName": name, "diskURI": f"/subscriptions/s/{name}", "kind": "Managed"}},
            ]
        spec |= dice.choice(sources)
        if dice.maybe(0.7):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self._reach()]}}
        return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}

    def _reach(self) -> Object:
        dice = self._dice
        if dice.maybe(0.3):
            names = dice.some([node["metadata"]["name"] for node in self._cluster], 1, 3)
            return {"matchExpressions": [{"key": parts.HOSTNAME, "operator": "In", "values": names}]}
        zones = dice.some(("z0", "z1", "z2"), 1, 2)
        return {"matchExpressions": [{"key": parts.ZONE, "operator": "In", "values": zones}]}
