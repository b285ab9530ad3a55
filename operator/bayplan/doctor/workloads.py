"""What of pods and budgets keeps nodes from being packed or emptied."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from msgspec import structs

from bayplan.api.meta_objects import OwnerReference, format_time
from bayplan.api.objects import Container, Node, ResourceRequirements, Taint, Toleration
from bayplan.api.selectors import compile_label_selector
from bayplan.api.tolerations import tolerates
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, node_allocatable
from bayplan.doctor.finding import Finding, Patient
from bayplan.scheduler.api_calls import shown_condition
from bayplan.shown_text import counted
from bayplan.simulate.admission import UNNAMED_SCHEDULER
from bayplan.simulate.drain import ALONE, Allowances, why_it_stays
from bayplan.simulate.input_files import waiting_pods
from bayplan.simulate.simulator import Simulator

_ASSUMED: Final = {CPU: "100m", MEMORY: "200Mi"}
"""What kube-scheduler takes a container for that asks for nothing (upstream: pkg/scheduler/util/pod_resources.go)."""
_LIMIT_RANGE: Final = """\
apiVersion: v1
kind: LimitRange
metadata: {{name: default-requests, namespace: {namespace}}}
spec:
  limits:
  - {{type: Container, defaultRequest: {{cpu: 100m, memory: 200Mi}}}}
"""
_NO_SCHEDULE: Final = "NoSchedule"
_TAINT: Final = """kubectl taint nodes {nodes} {name}=:NoSchedule
# and give pods that ask for it the toleration {{key: {name}, operator: Exists}}"""
_NAMED: Final = """\
kind: Deployment
spec: {{template: {{spec: {{schedulerName: {name}}}}}}}"""
_RENAMED: Final = """
# or, to see what it would do with the others: --scheduler-name {most}"""
_NOTICED_SECONDS: Final = 60
"""A scheduler that is there has tried a pod by then."""
_CONTROLLED: Final = """\
kind: Deployment
# or a Job, which makes a pod again that was evicted"""
_BUDGET: Final = """kubectl patch pdb {name} -n {namespace} --type merge -p \\
  '{{"spec": {{"minAvailable": null, "maxUnavailable": 1}}}}'"""
_NOMINATION: Final = """kubectl patch pod {name} -n {namespace} --subresource status --type merge -p \\
  '{{"status": {{"nominatedNodeName": null}}}}'"""


def unnamed_profiles(patient: Patient) -> Iterator[Finding]:
    """Profiles that no pod names: what they say of packing happens to nobody."""
    names = Counter(pod.pod.spec.scheduler_name for pod in (*patient.running, *waiting_pods(patient.objects)))
    profiles = patient.configuration.profiles
    # The flag renames the only profile.
    fix = _NAMED + _RENAMED if len(profiles) == 1 else _NAMED
    for profile in profiles if names else ():
        if not names[name := profile.scheduler_name]:
            most, count = names.most_common(1)[0]
            effect = f"it decides for none of {counted(names.total(), 'pod')}; most, {count}, have {most}"
            message = "no pod names it as its schedulerName"
            yield Finding("unnamed-profile", name, message, effect, fix.format(name=name, most=most))


def misspelled_schedulers(patient: Patient) -> Iterator[Finding]:
    """Names that are nearly a profile's and that no scheduler seems to have: nobody tries the pods, or tells why."""
    ours = [profile.scheduler_name for profile in patient.configuration.profiles]
    untried = {pod.uid for pod in waiting_pods(patient.objects) if shown_condition(pod) is None}
    late = Counter[str]()
    known = {UNNAMED_SCHEDULER, *ours}
    for pod in patient.objects.pods:
        if pod.uid not in untried:
            known.add(pod.pod.spec.scheduler_name)
        elif (pod.pod.metadata.creation_timestamp or "") < format_time(patient.now - _NOTICED_SECONDS):
            late[pod.pod.spec.scheduler_name] += 1
    for name in sorted(late.keys() - known):
        if close := get_close_matches(name[:64], ours, n=1):
            message = f"nobody ever tried a pod of this scheduler; {close[0]} is meant"
            effect = f"{counted(late[name], 'pod waits', 'pods wait')}, and no Event tells why"
            yield Finding("misspelled-scheduler", name, message, effect, _NAMED.format(name=close[0]))


def without_controller(patient: Patient) -> Iterator[Finding]:
    """Pods that nothing would make again: nobody moves them, and their nodes stay in use until they end."""
    alone = {pod.uid for pod in patient.running if why_it_stays(pod) == ALONE}
    if not alone:
        return
    better = patient.packed(pods=[_owned(pod) if pod.uid in alone else pod for pod in patient.objects.pods])
    # Packing anew may take more nodes than are in use: what only makes up for that saves none.
    if patient.saves(better) and better.nodes < patient.unmoved:
        hosts = {pod.pod.spec.node_name for pod in patient.running if pod.uid in alone}
        message = "nothing would make such a pod again, so nobody moves it"
        effect = f"they keep {counted(len(hosts), 'node')} in use; {patient.compared(better)}"
        yield Finding("without-controller", counted(len(alone), "pod"), message, effect, _CONTROLLED)


def without_requests(patient: Patient) -> Iterator[Finding]:
    """Pods that ask for no cpu and no memory, where it would cost nodes if they asked for what they are taken for."""
    found = [
        pod
        for pod in patient.running
        if not {CPU, MEMORY} & {key for key, amount in pod.placed.amounts.items() if amount}
    ]
    if found:
        uids = {pod.uid for pod in found}
        better = patient.packed(pods=[_asking(pod) if pod.uid in uids else pod for pod in patient.objects.pods])
        lost = better.unplaced - patient.as_it_is.unplaced
        if better.nodes <= patient.as_it_is.nodes and lost <= 0:
            return
        namespace, most = Counter(pod.namespace for pod in found).most_common(1)[0]
        crowd = max(Counter(pod.pod.spec.node_name for pod in found).values())
        effect = f"up to {crowd} on a node count as nothing; {patient.needed}, {better.nodes} where they ask for that"
        effect += f", and {counted(lost, 'pod')} without a node" if lost > 0 else ""
        message = f"without a request for cpu or memory, {most} of them in namespace {namespace}"
        fix = _LIMIT_RANGE.format(namespace=namespace)
        yield Finding("without-requests", counted(len(found), "pod"), message, effect, fix)


def guests_on_devices(patient: Patient) -> Iterator[Finding]:
    """Pods on nodes with devices of which they ask for none, though other nodes have room for them."""
    offers = {node.metadata.name: node_allocatable(node) for node in patient.objects.nodes}
    for name in sorted(patient.asked_devices):
        hosts = {node for node, each in offers.items() if each.get(name)}
        there = (pod for pod in patient.running if pod.pod.spec.node_name in hosts)
        guests = [pod for pod in there if not pod.placed.amounts.get(name) and not _tolerates(pod, name)]
        if not guests:
            continue
        better = patient.packed(
            nodes=[_tainted(node, name) if node.metadata.name in hosts else node for node in patient.objects.nodes],
            pods=[_tolerating(pod, name) if pod.requests.amounts.get(name) else pod for pod in patient.objects.pods],
        )
        if better.unplaced <= patient.as_it_is.unplaced:
            crowded = len({pod.pod.spec.node_name for pod in guests})
            guests_told = f"{counted(len(guests), 'pod')} without a request for it"
            message = f"{guests_told} on {crowded} of {counted(len(hosts), 'node')} with it"
            effect = f"with the taint they find other nodes; {patient.compared(better)}"
            fix = _TAINT.format(nodes=" ".join(sorted(hosts)[:3]), name=name)
            yield Finding("guests-on-devices", name, message, effect, fix)


def never_disrupted(patient: Patient) -> Iterator[Finding]:
    """Budgets that want as many pods healthy as there are: they allow no eviction, ever."""
    for budget in patient.objects.looked_up:
        if not isinstance(budget, PodDisruptionBudget) or budget.status.disruptions_allowed > 0:
            continue
        meta, asked, covers = budget.metadata, Allowances([budget]), compile_label_selector(budget.spec.selector)
        there = [pod for pod in patient.objects.pods if pod.namespace == meta.namespace and not is_finished(pod.pod)]
        # Those that are not ready, or wait for a node, count as well: once they run it allows as many more.
        covered = sum(covers.matches(pod.pod.metadata.labels) for pod in there)
        hosts = [pod.pod.spec.node_name for pod in patient.running if asked.asked_by(pod)]
        if hosts and budget.status.desired_healthy >= covered:
            pods = counted(covered, "pod")
            message = f"wants {budget.status.desired_healthy} of {pods} healthy, and so allows no eviction, ever"
            effect = f"no drain gets {counted(len(hosts), 'pod')} off {counted(len(set(hosts)), 'node')}; "
            effect += "preemption takes them last"
            fix = _BUDGET.format(name=meta.name, namespace=meta.namespace)
            yield Finding("never-disrupted", f"{meta.namespace}/{meta.name}", message, effect, fix)


def stale_nominations(patient: Patient) -> Iterator[Finding]:
    """Pods that wait for room on a node that they cannot get: it is kept for them, and no autoscaler adds any."""
    offers = {
        node.metadata.name: node_allocatable(node) for node in patient.objects.nodes if not node.spec.unschedulable
    }
    for pod in waiting_pods(patient.objects):
        node = pod.pod.status.nominated_node_name
        taken = Counter[str]()
        for other in patient.objects.pods:
            if other.pod.spec.node_name == node and other.priority >= pod.priority and not is_finished(other.pod):
                taken.update(other.placed.amounts)
        left = {name: amount - taken[name] for name, amount in offers.get(node, {}).items()}
        if node and any(amount > left.get(name, 0) for name, amount in pod.requests.amounts.items()):
            freed = structs.replace(pod.pod, status=structs.replace(pod.pod.status, nominated_node_name=""))
            others = [each for each in patient.objects.pods if each is not pod]
            counts = [_placed(patient, [*others, each]) for each in (pod, PodInfo(freed))]
            message = f"is nominated to {node}, which is gone, closed or full of pods that are as important"
            effect = (
                f"{counts[0]} of the pods that wait fit as it is, {counts[1]} without; no autoscaler adds a node for it"
            )
            fix = _NOMINATION.format(name=pod.name, namespace=pod.namespace)
            yield Finding("stale-nomination", pod.key, message, effect, fix)


def _placed(patient: Patient, pods: list[PodInfo]) -> int:
    simulator = Simulator(patient.configuration)
    simulator.add(replace(patient.objects, pods=[PodInfo(pod.pod) for pod in pods]))
    return simulator.run().summary.scheduled


def _owned(pod: PodInfo) -> PodInfo:
    owner = OwnerReference("apps/v1", "ReplicaSet", pod.name, pod.uid, controller=True)
    return PodInfo(structs.replace(pod.pod, metadata=structs.replace(pod.pod.metadata, owner_references=[owner])))


def _asking(pod: PodInfo) -> PodInfo:
    containers = [_with_requests(each) for each in pod.pod.spec.containers]
    return pod.with_spec(containers=containers)


def _with_requests(container: Container) -> Container:
    own = container.resources or ResourceRequirements()
    return structs.replace(container, resources=structs.replace(own, requests={**_ASSUMED, **(own.requests or {})}))


def _tolerates(pod: PodInfo, key: str) -> bool:
    return tolerates(pod.pod.spec.tolerations or (), Taint(key, effect=_NO_SCHEDULE), compares=False)


def _tainted(node: Node, key: str) -> Node:
    taints = [*(node.spec.taints or ()), Taint(key, effect=_NO_SCHEDULE)]
    return structs.replace(node, spec=structs.replace(node.spec, taints=taints))


def _tolerating(pod: PodInfo, key: str) -> PodInfo:
    tolerations = [*(pod.pod.spec.tolerations or ()), Toleration(key, "Exists")]
    return pod.with_spec(tolerations=tolerations)
