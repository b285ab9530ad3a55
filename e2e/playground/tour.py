"""What the playground says: where the cluster is, and what to try."""

from dataclasses import dataclass
from pathlib import Path
from shlex import quote

NAMESPACE = "bayplan-system"
LEADER_LABEL = "playground/leader"
"""The label of the pod that leads; on a real cluster the Lease names it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command to try, and what it shows."""

    title: str
    command: str


def steps() -> tuple[Step, ...]:
    """Returns the five commands, in an order in which each has something to show.

    They are for a shell in the root of the repository.
    """
    waiting = "custom-columns=POD:.metadata.name,WHY:.status.conditions[0].message"
    return (
        Step(
            "Deployments: 48 pods of half a CPU that a Service selects, and eight that take all GPUs",
            "kubectl apply -f examples/playground/work.yaml && kubectl rollout status deployment/web",
        ),
        Step(
            "How many pods each node got: they fill one after the other",
            "kubectl get pods -l app=web -o custom-columns=NODE:.spec.nodeName --no-headers | sort | uniq -c",
        ),
        Step(
            "A preemption: an urgent pod takes the GPU of another one",
            "kubectl apply -f examples/playground/urgent.yaml"
            " && kubectl wait --for=condition=Ready pod/urgent --timeout=2m"
            " && kubectl get events --field-selector reason=Preempted",
        ),
        Step(
            "Why a pod waits: the one that came in the victim's place",
            f"kubectl get pods --field-selector status.phase=Pending -o '{waiting}'",
        ),
        Step(
            "A failover: the leader ends, and the other replica places 12 more pods",
            f"kubectl -n {NAMESPACE} delete pod -l {LEADER_LABEL}=true && kubectl scale deployment/web --replicas=60"
            f" && kubectl rollout status deployment/web && kubectl -n {NAMESPACE} get lease,pods",
        ),
    )


def questions(address: Path) -> str:
    """Returns the commands that ask the replica whose address is in a file, a line each."""
    at = f'--server "$(cat {quote(str(address))})" --insecure-skip-tls-verify'
    return f"  .venv/bin/bayplan explain POD {at}\n  .venv/bin/bayplan web {at}"


def guide(*, folder: Path, repository: Path, nodes: int, address: Path, prometheus: str | None) -> str:
    """Returns all that is printed when the cluster is there; `folder` has the kubeconfig and bin/kubectl.

    The file `address` has that of the replica that leads, at any time.
    """
    tries = "\n\n".join(f"  {number}. {each.title}:\n     $ {each.command}" for number, each in enumerate(steps(), 1))
    alerts = "" if prometheus is None else f"Prometheus, with the shipped alerts: {prometheus}\n"
    return f"""
bayplan schedules on {nodes} nodes, installed by manifests/overlays/production. In another terminal:

  cd {quote(str(repository))}
  export KUBECONFIG={quote(str(folder / "kubeconfig"))}
  export PATH={quote(str(folder / "bin"))}:$PATH

and one after the other:

{tries}

To ask the replica that leads why a pod of yours waits, and for its page; no kubelet leads to its port:

{questions(address)}

{alerts}docs/playground.md says what is real in it.
Ctrl-C ends all of it and removes {folder}.
"""
