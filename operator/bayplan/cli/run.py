"""`bayplan run`: the scheduler against a cluster."""

import signal
from dataclasses import replace

from bayplan.cli import nothing_collected
from bayplan.cli.flags import command, flag_values
from bayplan.cli.process import return_large_blocks
from bayplan.cli.run_flags import AcceptedFlags, DeprecatedFlags, LeaderElectionFlags, LogFlags, RunFlags
from bayplan.logs.formats import LoggingFormat
from bayplan.logs.line_writer import set_up_logging
from bayplan.server.options import AuthenticationOptions, AuthorizationOptions, ServingOptions


@command(
    examples=(
        "bayplan run --config scheduler.yaml",
        "bayplan run --kubeconfig ~/.kube/config --context test --scheduler-name packer -v 2",
        "bayplan run --config scheduler.yaml --write-config-to effective.yaml",
    ),
)
def run(
    *,
    flags: RunFlags,
    serving: ServingOptions,
    authentication: AuthenticationOptions,
    authorization: AuthorizationOptions,
    election: LeaderElectionFlags,
    deprecated: DeprecatedFlags,
    accepted: AcceptedFlags,
    logs: LogFlags,
) -> None:
    """Schedule the pods that name one of our profiles, until SIGTERM."""
    if flags.config is not None:
        # The file is about to be read, and the scheduler heeds it from then on.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return_large_blocks()
    set_up_logging(LoggingFormat(logs.logging_format), logs.verbosity)
    with nothing_collected():
        # Imported here so that `--help` does not pay for kopf and the API client.
        from bayplan.cli.serve import serve, write_configuration  # noqa: PLC0415

    if flags.write_config_to is not None:
        write_configuration(flags, election, deprecated, flags.write_config_to)
        return
    options = replace(serving, authentication=authentication, authorization=authorization, flags=flag_values())
    serve(flags, election, deprecated, options)
