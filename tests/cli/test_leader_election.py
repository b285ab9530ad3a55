from datetime import timedelta

import pytest

from bayplan.cli import main
from bayplan.cli.run import LeaderElectionFlags
from bayplan.config.connections import LeaderElection
from bayplan.config.errors import ConfigurationError

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def errors_of(**flags):
    with pytest.raises(ConfigurationError) as raised:
        LeaderElectionFlags(**flags).applied_to(LeaderElection(leader_elect=True), {})
    return [str(error) for error in raised.value.errors]


@pytest.mark.parametrize(("environment", "elects"), [(POD, True), ({}, None)])
def test_what_nobody_decides_is_on_in_a_pod_and_elsewhere_left_to_what_is_found(environment, elects):
    assert LeaderElectionFlags().applied_to(LeaderElection(), environment).leader_elect is elects


@pytest.mark.parametrize("file", [True, False])
@pytest.mark.parametrize("environment", [POD, {}])
def test_what_the_file_says_holds_everywhere(file, environment):
    assert LeaderElectionFlags().applied_to(LeaderElection(leader_elect=file), environment).leader_elect is file


@pytest.mark.parametrize("elects", [True, False])
def test_a_flag_wins_over_the_file(elects):
    flags = LeaderElectionFlags(leader_elect=elects)
    assert flags.applied_to(LeaderElection(leader_elect=not elects), {}).leader_elect is elects


def test_every_flag_sets_its_field():
    flags = LeaderElectionFlags(
        leader_elect=True,
        lease_duration=timedelta(minutes=1),
        renew_deadline=timedelta(seconds=30),
        retry_period=timedelta(milliseconds=500),
        resource_lock="leases",
        resource_name="a",
        resource_namespace="b",
    )
    assert flags.applied_to(LeaderElection(), {}) == LeaderElection(
        leader_elect=True,
        lease_duration=timedelta(minutes=1),
        renew_deadline=timedelta(seconds=30),
        retry_period=timedelta(milliseconds=500),
        resource_name="a",
        resource_namespace="b",
    )


def test_values_that_are_none_are_told_together_with_their_flags(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "--leader-elect=maybe", "--leader-elect-lease-duration=15", "--leader-elect-retry-period=soon"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        '--leader-elect: Invalid value: "maybe": must be true or false',
        '--leader-elect-lease-duration: Invalid value: "15": must be a duration such as "15s"',
        '--leader-elect-retry-period: Invalid value: "soon": must be a duration such as "15s"',
    ]


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (
            {"lease_duration": timedelta(seconds=10)},
            'leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline` (10s)',
        ),
        ({"renew_deadline": timedelta()}, 'renewDeadline: Invalid value: "0s": must be greater than zero'),
        ({"retry_period": timedelta(seconds=-1)}, 'retryPeriod: Invalid value: "-1s": must be greater than zero'),
        (
            {"retry_period": timedelta(seconds=9)},
            'renewDeadline: Invalid value: "10s": must be greater than retryPeriod * 1.2',
        ),
        (
            {"lease_duration": timedelta(seconds=10.9), "renew_deadline": timedelta(seconds=10.5)},
            'leaseDuration: Invalid value: "10.9s": must be greater than renewDeadline (10.5s) in whole seconds',
        ),
        (
            {"resource_lock": "endpoints"},
            'resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ),
        ({"resource_name": ""}, "resourceName: Required value"),
        ({"resource_namespace": ""}, "resourceNamespace: Required value"),
    ],
)
def test_an_election_that_cannot_work_is_refused_with_its_field(flags, error):
    assert errors_of(**flags) == [f"leaderElection.{error}"]


def test_what_is_switched_off_need_not_work():
    flags = LeaderElectionFlags(leader_elect=False, lease_duration=timedelta(seconds=1))
    assert flags.applied_to(LeaderElection(), POD).lease_duration == timedelta(seconds=1)


@pytest.mark.parametrize("spelling", ["--leader-elect", "--leader-elect=true"])
def test_the_switch_may_stand_alone_as_in_kube_scheduler(tmp_path, capsys, spelling):
    config = tmp_path / "config.yaml"
    config.write_text(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration,"
        " leaderElection: {leaderElect: false, resourceName: kube-scheduler}}"
    )
    flags = ["--config", str(config), "--kubeconfig", str(tmp_path / "none"), spelling]
    with pytest.raises(SystemExit) as ended:
        main(["run", *flags])
    assert ended.value.code == 2
    warning = "leaderElection.resourceName is kube-scheduler's lease: one of the two schedules at a time"
    assert warning in capsys.readouterr().err


def test_run_refuses_flags_that_do_not_work_together(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "--kubeconfig", str(tmp_path / "none"), "--leader-elect", "--leader-elect-lease-duration=5s"])
    assert ended.value.code == 2
    # What was typed, and not the deadline alone, which kube-scheduler shows.
    assert capsys.readouterr().err == (
        'leaderElection.leaseDuration: Invalid value: "5s": must be greater than `RenewDeadline` (10s)\n'
    )
