"""`bayplan explain`: why a pod of a running scheduler is pending, or where it is."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import click
import msgspec

from bayplan.api.kinds import path_segment
from bayplan.cli.flags import command
from bayplan.cli.process import answer_or_end
from bayplan.client.leader import Target, what_is_known
from bayplan.config.errors import InputError, quote_unprintable
from bayplan.config.flags import FILE_TEXT, flag
from bayplan.shown_text import printable

_DEFAULT_NAMESPACE: Final = "default"
_OF_BODY: Final = "body: "


@dataclass(frozen=True, kw_only=True)
class _Flags:
    pod: str | None = flag("[POD]", "Its name, or NAMESPACE/NAME.")
    filename: str | None = flag(
        "--filename -f FILE",
        "Where pods or workloads that are not there yet would go, YAML or JSON; - is standard input.",
        type=FILE_TEXT,
    )
    pending: bool = flag("--pending", "Why all pods wait that do, by reason.")
    namespace: str | None = flag(
        "--namespace -n NAME",
        "Where it is; default, unless POD is NAMESPACE/NAME. With --pending: only the pods there.",
    )
    output: str = flag("--output -o table|json", "For people, or for programs.", default="table")


@command(
    examples=(
        "bayplan explain web-7d4b9 -n shop",
        "bayplan explain -f pod.yaml",
        "bayplan explain --pending",
        "bayplan explain web-7d4b9 --server https://10.0.0.7:10259 --certificate-authority ca.crt",
    ),
)
def explain(flags: _Flags, target: Target) -> None:
    """Say why POD is pending, what would help, who is ahead of it and what would wake it.

    The running scheduler works it out now, by the engine that it schedules with. Of a pod that is on a node it tells
    the decision that was taken, and where it would go if it were not there.

    The scheduler is found by its Lease and reached by a port-forward, with your kubeconfig. It is shown a token of the
    ServiceAccount bayplan-reader; your own credentials are for the API server only. Or it is asked at --server.
    """
    from bayplan.cli.explanation_lines import asked_lines, live_lines, pending_lines, pending_reasons  # noqa: PLC0415
    from bayplan.live.answers import ExplanationAnswer, SimulationAnswer  # noqa: PLC0415

    if [flags.pod is not None, flags.filename is not None, flags.pending].count(True) != 1:
        raise click.UsageError("give one of POD, --filename and --pending")
    as_json = flags.output == "json"
    if flags.pending:
        reasons = answer_or_end(pending_reasons(target, flags.namespace))
        _show(reasons, partial(pending_lines, namespace=flags.namespace), as_json=as_json)
    elif flags.filename is not None:
        question = _simulated(target, flags.filename, _body(flags.filename, flags.namespace or _DEFAULT_NAMESPACE))
        _show(answer_or_end(question, dict if as_json else SimulationAnswer), asked_lines, as_json=as_json)
    else:
        question = _ask(target, *_pod_named(flags.pod or "", flags.namespace))
        _show(answer_or_end(question, dict if as_json else ExplanationAnswer), live_lines, as_json=as_json)


def _show(answer: Any, lines: Callable[[Any], Iterable[str]], *, as_json: bool) -> None:  # noqa: ANN401 - any answer
    """Print an answer: every finished line printable, whatever the scheduler sent."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2))
        return
    for line in lines(answer):
        click.echo(printable(line))


def _body(file: str, namespace: str) -> bytes:
    """Read what is asked about; what cannot be read ends the command with one line.

    Objects are checked as `bayplan simulate --add` does; those that name no namespace are put into `namespace`.
    """
    from bayplan.simulate.validation import Validate, Validation  # noqa: PLC0415

    validation = Validation(Validate.STRICT)
    with validation.told():
        objects = list(validation.objects_in([file], are_added=True))
    items = [msgspec.json.decode(raw.value) for raw in objects]
    for item in items:
        if isinstance(meta := item.get("metadata"), dict):
            meta.setdefault("namespace", namespace)
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


async def _simulated(target: Target, file: str, body: bytes) -> bytes:
    from bayplan.client.connect import connect  # noqa: PLC0415
    from bayplan.client.errors import RefusedError  # noqa: PLC0415

    async with connect(target) as client:
        try:
            return await client.simulation(body, "")
        except RefusedError as error:
            # The scheduler knows no file, only the body of a request.
            said = str(error)
            if said.startswith(_OF_BODY):
                said = f"{quote_unprintable(file)}: {said.removeprefix(_OF_BODY)}"
            raise RefusedError(error.status, said) from None


async def _ask(target: Target, namespace: str, name: str) -> bytes:
    from bayplan.api.errors import DECODE_ERRORS  # noqa: PLC0415
    from bayplan.client.connect import connect  # noqa: PLC0415
    from bayplan.client.errors import ClientError, RefusedError  # noqa: PLC0415
    from bayplan.live.answers import SummaryAnswer  # noqa: PLC0415

    async with connect(target) as client:
        try:
            return await client.explanation(namespace, name)
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            ours: list[str] = []
            # It only adds to what is said of the pod: whoever may not ask for it is told of the pod all the same.
            with suppress(ClientError, *DECODE_ERRORS):
                summary = msgspec.json.decode(await client.summary(), type=SummaryAnswer)
                ours = [profile.scheduler_name for profile in summary.profiles]
            known = await what_is_known(target, namespace, name, ours)
            raise RefusedError(error.status, known or str(error)) from None


def _pod_named(pod: str, namespace: str | None) -> tuple[str, str]:
    """Return the namespace and the name: a pod is also called as kubectl and `bayplan simulate` call it.

    What can be no name ends the command with one line.
    """
    kind, slash, rest = pod.partition("/")
    named = (namespace or _DEFAULT_NAMESPACE, pod)
    if slash and kind in {"pod", "pods", "po"}:
        named = (named[0], rest)
    elif slash and namespace not in {None, kind}:
        raise InputError(f"{pod!a} names the namespace {kind!a} and --namespace {namespace!a}: give one of them")
    elif slash:
        named = (kind, rest)
    for each in named:
        try:
            path_segment(each)
        except ValueError:
            raise InputError(f"{each!a}: is no name of a pod or namespace") from None
    return named
