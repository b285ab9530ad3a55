"""The pods that the controllers of all workloads of a cluster would make, as the API server would have them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.api.objects import Node
from bayplan.api.quantity import QuantityError
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.listers import NamedObject, key_of
from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.admission import Admission
from bayplan.simulate.controllers import Controllers, WorkloadError
from bayplan.simulate.documents import ClusterFileError, RawObject, title
from bayplan.simulate.made_pods import made_claims, made_pods
from bayplan.simulate.refusals import AdmissionError
from bayplan.simulate.rollout import rolled_out
from bayplan.simulate.workloads import DaemonSet, Workload, template_of


@dataclass
class Making:
    """Makes pods once; `skip` is told of workloads that make none and should, why, and the number of their pods."""

    admission: Admission
    nodes: Sequence[Node]
    most_pods: int
    added: dict[str, list[PodInfo]]
    """Is filled with the pods of added workloads, by where the workload stands."""
    replaced: Mapping[str, Workload]
    """What was there before of the same name, likewise."""
    skip: Callable[[RawObject, str, int], None]
    making_way: list[PodInfo] = field(default_factory=list)
    """The pods that leave before some of a changed template are tried."""
    notes: list[str] = field(default_factory=list)

    def pods_of(
        self, workloads: Sequence[tuple[Workload, RawObject]], pods: list[PodInfo], looked_up: list[NamedObject]
    ) -> list[PodInfo]:
        """Return `pods` with those that are made, and add what goes with these to `looked_up`.

        Raises:
            ClusterFileError: a workload asks for more pods than a simulation makes.
        """
        raws = [raw for _, raw in workloads]
        added = {index: self.replaced.get(raw.where) for index, raw in enumerate(raws) if raw.where in self.added}
        asking, gone = rolled_out([each for each, _ in workloads], added, pods, self.admission, self.notes)
        self.making_way = [info for info in pods if info.uid in gone]
        pods = [info for info in pods if info.uid not in gone]
        controllers = Controllers(asking, (info.pod for info in pods), self.nodes, self.most_pods)
        try:
            batches = controllers.batches()
        except WorkloadError as error:
            raise ClusterFileError(f"{title(raws[error.index])}: {error}") from None
        claims = {key_of(each.metadata) for each in looked_up if isinstance(each, PersistentVolumeClaim)}
        for index, batch in batches:
            try:
                made = list(made_pods(batch, self.admission, are_added=index in added))
            except (AdmissionError, QuantityError) as error:
                self.skip(raws[index], f"{batch.path}.{error}", len(batch.members))
                continue
            pods.extend(made)
            if index in added:
                self.added[raws[index].where] = made
            if batch.replica_set is not None:
                looked_up.append(batch.replica_set)
            looked_up.extend(each for each in made_claims(batch) if key_of(each.metadata) not in claims)
        for index in sorted(added.keys() - {index for index, _ in batches}):
            self._take_sample(controllers, asking[index], raws[index])
        return pods

    def _take_sample(self, controllers: Controllers, workload: Workload, raw: RawObject) -> None:
        """Make a pod, beside all others, of a workload that was added and asks for no more of them."""
        path = template_of(workload)[0]
        try:
            sample = controllers.one_more(workload)
            self.added[raw.where] = [] if sample is None else list(made_pods(sample, self.admission, are_added=True))
        except (AdmissionError, QuantityError) as error:
            self.skip(raw, f"{path}.{error}", 0)
        if isinstance(workload, DaemonSet) and not controllers.has_pods(workload):
            self.skip(raw, f"{path}: no pod is made: no node has what it selects and lets it in by its taints", 0)
