"""What the API server says of a pod that the scheduler does not know."""

from http import HTTPStatus

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.credentials import load_credentials
from bayplan.api.errors import DECODE_ERRORS, CredentialsError
from bayplan.api.kinds import path_segment
from bayplan.api.objects import Pod
from bayplan.client.errors import NotReachedError, answer_to
from bayplan.client.leader import Target

_decoder = msgspec.json.Decoder(Pod)


async def what_is_known(target: Target, namespace: str, name: str) -> str | None:
    """Return why the scheduler may not know a pod, as one line; None where the API server does not say."""
    try:
        api = ApiClient(load_credentials(target.kubeconfig, target.context), qps=5, burst=5)
    except CredentialsError:
        return None
    try:
        path = f"/api/v1/namespaces/{path_segment(namespace)}/pods/{path_segment(name)}"
        answer = await answer_to(api, "GET", path)
    except NotReachedError:
        return None
    finally:
        await api.close()
    if answer.status == HTTPStatus.NOT_FOUND:
        return f"there is no pod {namespace}/{name}"
    if answer.status != HTTPStatus.OK:
        return None
    try:
        return _told(_decoder.decode(answer.body))
    except DECODE_ERRORS:
        return None


def _told(pod: Pod) -> str:
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if pod.status.phase in {"Succeeded", "Failed"}:
        return f"pod {key} has ended: {pod.status.phase}"
    where = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
    whose = pod.spec.scheduler_name or "default-scheduler"
    return f"pod {key}{where} is for the scheduler {whose[:253]!a}; the one that was asked does not know it"
