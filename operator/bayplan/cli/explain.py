"""`bayplan explain`: why a pod of a running scheduler is pending, or where it is."""

import asyncio
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import click

from bayplan.api.kinds import path_segment
from bayplan.cli import BAD_INPUT, tell_line
from bayplan.cli.help_sections import Command
from bayplan.cli.output_format import OUTPUT, OutputFormat
from bayplan.cli.scheduler_target import target_options

if TYPE_CHECKING:
    from bayplan.client.target import Target

NOT_ANSWERED: Final = 1
"""Exit code where the scheduler, or the API server that leads to it, does not answer the question."""
_DEFAULT_NAMESPACE: Final = "default"


@click.command(
    cls=Command,
    examples=(
        "bayplan explain web-7d4b9 -n shop",
        "bayplan explain web-7d4b9 --server https://10.0.0.7:10259 --certificate-authority ca.crt",
    ),
)
@click.argument("pod", metavar="POD", help="Its name, or NAMESPACE/NAME.")
@click.option("--namespace", "-n", metavar="NAME", help="Where the pod is; default, unless POD is NAMESPACE/NAME.")
@OUTPUT
@target_options
def explain(pod: str, namespace: str | None, output: str, target: "Target") -> None:
    """Say why POD is pending, what would help, who is ahead of it and what would wake it.

    The running scheduler works it out now, by the engine that it schedules with. Of a pod that is on a node it says
    where it would go if it were not there.

    The scheduler is found by its Lease and reached by a port-forward, with your kubeconfig. It is shown a token of the
    ServiceAccount bayplan-reader; your own credentials are for the API server only. Or it is asked at --server.
    """
    # Imported here so that the overview of commands does not wait for them.
    import msgspec  # noqa: PLC0415

    from bayplan.cli.explanation_lines import live_lines  # noqa: PLC0415
    from bayplan.client.errors import CannotLogInError, ClientError  # noqa: PLC0415
    from bayplan.live.answers import ExplanationAnswer  # noqa: PLC0415

    asked_namespace, name = _pod_named(pod, namespace)
    for each in (asked_namespace, name):
        try:
            path_segment(each)
        except ValueError:
            tell_line(f"{each!r}: is no name of a pod or namespace")
            sys.exit(BAD_INPUT)
    try:
        answer = asyncio.run(_ask(target, asked_namespace, name))
        if output == OutputFormat.JSON:
            click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2))
            return
        told = msgspec.convert(answer, ExplanationAnswer)
    except ClientError as error:
        tell_line(str(error))
        sys.exit(BAD_INPUT if isinstance(error, CannotLogInError) else NOT_ANSWERED)
    except msgspec.ValidationError as error:
        click.echo(f"the scheduler is of another version, its answer is not understood: {error}; try -o json", err=True)
        sys.exit(NOT_ANSWERED)
    for line in live_lines(told):
        click.echo(line)


async def _ask(target: "Target", namespace: str, name: str) -> dict[str, Any]:
    from bayplan.client.connect import connect  # noqa: PLC0415
    from bayplan.client.errors import RefusedError  # noqa: PLC0415
    from bayplan.client.pod_lookup import what_is_known  # noqa: PLC0415

    async with connect(target) as client:
        try:
            return await client.explanation(namespace, name)
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            known = await what_is_known(target, namespace, name)
            raise RefusedError(error.status, known or str(error)) from None


def _pod_named(pod: str, namespace: str | None) -> tuple[str, str]:
    """Return the namespace and the name: a pod is also called as kubectl and `bayplan simulate` call it."""
    kind, slash, rest = pod.partition("/")
    if slash and kind in {"pod", "pods", "po"}:
        return namespace or _DEFAULT_NAMESPACE, rest
    if slash and namespace is None:
        return kind, rest
    return namespace or _DEFAULT_NAMESPACE, pod
