"""The options that say which running scheduler is asked, and with which token."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import fields
from functools import wraps
from typing import Any, Final

import click
import msgspec

from bayplan.cli import BAD_INPUT, tell_line
from bayplan.cli.cluster_flags import CONTEXT, FILE_NAME, KUBECONFIG
from bayplan.client.leader import ACCOUNT, LEASE, Target

_OPTIONS: Final = (
    KUBECONFIG,
    CONTEXT,
    click.option(
        "--scheduler-namespace",
        metavar="NAME",
        help="Where the scheduler runs; otherwise bayplan-system or kube-system, if one of them has its Lease.",
    ),
    click.option("--lease", metavar="NAME", default=LEASE, help="The Lease of its replicas."),
    click.option(
        "--scheduler-service-account",
        "service_account",
        metavar="NAME",
        default=ACCOUNT,
        help="The ServiceAccount of its replicas: no other pod that holds the Lease is asked.",
    ),
    click.option(
        "--server", metavar="URL", help="Ask the scheduler at https://HOST:10259 instead of by a port-forward."
    ),
    click.option(
        "--certificate-authority",
        "authority",
        type=FILE_NAME,
        metavar="FILE",
        help="Who signed the certificate at --server, PEM.",
    ),
    click.option(
        "--insecure-skip-tls-verify",
        "insecure",
        is_flag=True,
        help="Take any certificate at --server for the scheduler's.",
    ),
    click.option(
        "--token-file",
        type=FILE_NAME,
        metavar="FILE",
        help="Show the scheduler this token instead of bayplan-reader's.",
    ),
    click.option(
        "--own-token", is_flag=True, help="Show the scheduler the token of the kubeconfig: it could act as you with it."
    ),
)


NOT_ANSWERED: Final = 1
"""Exit code where the scheduler, or the API server that leads to it, does not answer the question."""


def answered(question: Coroutine[Any, Any, Any], kind: type | None = None) -> Any:  # noqa: ANN401 - of the kind
    """Return what a scheduler answers, understood as of a kind; where it does not, end the command with one line."""
    from bayplan.client.errors import CannotLogInError, ClientError  # noqa: PLC0415

    code = NOT_ANSWERED
    try:
        answer = asyncio.run(question)
        return answer if kind is None else msgspec.convert(answer, kind)
    except ClientError as error:
        tell_line(str(error))
        code = BAD_INPUT if isinstance(error, CannotLogInError) else NOT_ANSWERED
    except msgspec.ValidationError as error:
        tell_line(f"the scheduler is of another version, its answer is not understood: {error}; try -o json")
    sys.exit(code)


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, and have it called with the `target` that they mean."""

    @wraps(command)
    def called(*, scheduler_namespace: str | None, **given: Any) -> None:  # noqa: ANN401 - of the options
        named = {each.name: given.pop(each.name) for each in fields(Target) if each.name != "namespace"}
        target = Target(namespace=scheduler_namespace, **named)
        if target.server is None and (target.authority is not None or target.insecure):
            raise click.UsageError("--certificate-authority and --insecure-skip-tls-verify are about --server")
        if target.authority is not None and target.insecure:
            raise click.UsageError("--certificate-authority and --insecure-skip-tls-verify exclude each other")
        if target.token_file is not None and target.own_token:
            raise click.UsageError("--token-file and --own-token exclude each other")
        command(target=target, **given)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called
