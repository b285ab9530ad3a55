"""Admission that fails for one kind of call in one namespace: a webhook that is broken in some way, a policy, a quota.

`failing_admission` puts it in force on a control plane and takes it away again. As a program,
`python -m e2e.controlplane.failing_webhook`, this is the webhook itself: a process apart from whoever measures.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.client import ApiError, Object
from e2e.controlplane.credentials import CertificateAuthority
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process, free_ports

BINDING, STATUS, DELETION, EVICTION, EVENTS = "binding", "status", "deletion", "eviction", "events"
REFUSED, HANGS_8, HANGS_31, ANSWERS_500, DENIES = "refused", "hangs-8", "hangs-31", "answers-500", "denies"
POLICY, QUOTA = "policy", "quota"
WEBHOOK_FAILURES = (REFUSED, HANGS_8, HANGS_31, ANSWERS_500, DENIES)
"""REFUSED: nobody listens. One that hangs allows the call after that many seconds, if it is still waited for."""

_RULES: dict[str, list[Object]] = {
    BINDING: [{"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods/binding"]}],
    STATUS: [{"apiGroups": [""], "operations": ["UPDATE"], "resources": ["pods/status"]}],
    DELETION: [{"apiGroups": [""], "operations": ["DELETE"], "resources": ["pods"]}],
    EVICTION: [{"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods/eviction"]}],
    EVENTS: [{"apiGroups": ["", "events.k8s.io"], "operations": ["CREATE", "UPDATE"], "resources": ["events"]}],
}
CALLS = tuple(_RULES)
DEFAULT_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS = 10, 30
"""What a webhook has that asks for nothing, and what it may ask for at most; the API server gives the call up then."""
_TAKEN_UP_SECONDS = 2.5
"""The API server takes configurations up a moment after they are created, policies a second or two later."""


@contextmanager
def failing_admission(
    plane: ControlPlane,
    namespace: str,
    call: str,
    failure: str,
    *,
    mutating: bool = False,
    timeout_seconds: int = LONGEST_TIMEOUT_SECONDS,
) -> Iterator[None]:
    """Has one kind of call fail in a namespace until the block ends; then held calls are cut off, and new ones pass.

    The API server waits `timeout_seconds` for a webhook.
    """
    name = f"failing-{call}-{namespace}"
    with contextlib.ExitStack() as stack:
        if failure == QUOTA:
            spec = {"hard": {"count/events": "0", "count/events.events.k8s.io": "0"}}
            _create(plane, stack, "resourcequotas", {"metadata": {"name": name, "namespace": namespace}, "spec": spec})
        elif failure == POLICY:
            _create(plane, stack, "validatingadmissionpolicies", _policy(name, namespace, call))
            binding = {"policyName": name, "validationActions": ["Deny"]}
            _create(plane, stack, "validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": binding})
        else:
            # The process ends last: a webhook that is still called and not there would be one more failure.
            port, authority = stack.enter_context(_webhook(plane, failure))
            kind = "mutating" if mutating else "validating"
            document = {
                "metadata": {"name": name},
                "webhooks": [_entry(namespace, call, port, authority) | {"timeoutSeconds": timeout_seconds}],
            }
            _create(plane, stack, f"{kind}webhookconfigurations", document)
        time.sleep(_TAKEN_UP_SECONDS)
        yield


def _create(plane: ControlPlane, stack: contextlib.ExitStack, resource: str, document: Object) -> None:
    plane.client.create(resource, document)
    metadata = document["metadata"]

    def delete() -> None:
        with contextlib.suppress(ApiError):
            plane.client.delete(resource, metadata["name"], namespace=metadata.get("namespace"))

    stack.callback(delete)


def _policy(name: str, namespace: str, call: str) -> Object:
    constraints = {"namespaceSelector": _only(namespace), "resourceRules": _rules(call)}
    denied = [{"expression": "false", "message": "not in this namespace"}]
    return {"metadata": {"name": name}, "spec": {"matchConstraints": constraints, "validations": denied}}


def _entry(namespace: str, call: str, port: int, authority: Path) -> Object:
    return {
        "name": "webhook.failing.example",
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/",
            "caBundle": base64.b64encode(authority.read_bytes()).decode(),
        },
        "rules": _rules(call),
        "namespaceSelector": _only(namespace),
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def _rules(call: str) -> list[Object]:
    return [{"apiVersions": ["v1"], **rule} for rule in _RULES[call]]


def _only(namespace: str) -> Object:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


@contextmanager
def _webhook(plane: ControlPlane, failure: str) -> Iterator[tuple[int, Path]]:
    """The port and the certificate authority of a webhook that fails in this way; one that refuses has no process."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="webhook-", dir=plane.directory) as name:
        folder = Path(name)
        authority = CertificateAuthority(folder)
        certificate, key = authority.serving()
        if failure == REFUSED:
            yield port, authority.certificate_file
            return
        arguments: list[str | Path] = ["--certificate", certificate, "--key", key, "--port", str(port)]
        with _WebhookProcess(folder, [*arguments, "--failure", failure]):
            yield port, authority.certificate_file


class _WebhookProcess(Process):
    def __init__(self, folder: Path, arguments: list[str | Path]) -> None:
        super().__init__(
            "webhook",
            [sys.executable, "-m", "e2e.controlplane.failing_webhook", *arguments],
            log_path=folder / "webhook.log",
            environment={**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "operator"), str(REPOSITORY)))},
            directory=folder,
        )

    def is_ready(self) -> bool:
        """Whether it listens: it says so once."""
        return "serves" in self.log()

    def stop(self, grace_seconds: float) -> int:
        """Kills it, whatever calls it holds."""
        self.kill()
        return self.wait(grace_seconds)


def _answer_of(failure: str) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        uid = json.loads(await request.read())["request"]["uid"]
        if failure.startswith("hangs-"):
            await asyncio.sleep(float(failure.removeprefix("hangs-")))
        if failure == ANSWERS_500:
            return web.Response(status=500, text="out of order")
        response: Object = {"uid": uid, "allowed": failure != DENIES}
        if failure == DENIES:
            response["status"] = {"code": 403, "message": "not in this namespace"}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    application = web.Application()
    application.router.add_post("/", answer)
    return application


def main() -> None:
    """Serves until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--failure", choices=WEBHOOK_FAILURES, required=True)
    options = parser.parse_args()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(options.certificate, options.key)
    web.run_app(
        _answer_of(options.failure),
        host="127.0.0.1",
        port=options.port,
        ssl_context=tls,
        access_log=None,
        backlog=2048,
        print=lambda _: print("serves", flush=True),
    )


if __name__ == "__main__":
    main()
