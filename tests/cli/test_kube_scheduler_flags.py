"""Each flag of kube-scheduler has an answer; `python -m tests.config.record` records them anew."""

import re
from pathlib import Path

import pytest
from tests.config.record import DATA, FLAGS

from bayplan.cli import main
from bayplan.cli.kube_scheduler_flags import PLACES, REFUSED, SWITCHES, as_go_reads
from bayplan.cli.run import run

ROOT = Path(__file__).parents[2]
KUBE_SCHEDULERS = set((DATA / FLAGS).read_text().split()) - {"--help"}
OWN = {
    "--http-port",
    "--ignore-other-leases",
    "--context",
    "--scheduler-name",
    "--kubelet-rejection-backoff",
    "--shadow",
    "--of",
}


def taken():
    """The long names of the flags that `bayplan run` takes."""
    return {name for each in run.params for name in each.opts if name.startswith("--")}


def documented():
    section = (ROOT / "docs" / "configuration.md").read_text().split("\n## Flags\n")[1].split("\n## ")[0]
    return {
        flag: (answer, note)
        for flag, answer, note in re.findall(r"^\| `(--\S+)` \| (\w+) \| (.*?) ?\|$", section, re.MULTILINE)
    }


def test_each_is_taken_or_refused_with_a_reason_and_none_is_both():
    assert taken() >= KUBE_SCHEDULERS - REFUSED.keys()
    assert taken() & REFUSED.keys() == set()
    assert REFUSED.keys() <= KUBE_SCHEDULERS


def test_what_is_taken_besides_is_our_own():
    assert taken() - KUBE_SCHEDULERS == OWN


def test_the_table_has_them_all_with_what_becomes_of_them():
    answers = {flag: "refused" if flag in REFUSED else "accepted" for flag in KUBE_SCHEDULERS}
    assert {flag: answer for flag, (answer, _) in documented().items()} == answers
    reasons = {flag: note[0].lower() + note[1:] for flag, (answer, note) in documented().items() if answer == "refused"}
    assert reasons == {flag: reason[0].lower() + reason[1:] for flag, reason in REFUSED.items()}


@pytest.mark.parametrize("arguments", [["--vmodule=a=1", "--log-json-split-stream"], ["--vmodule", "a=1"]])
def test_what_is_refused_is_told_with_its_reason_before_anything_else(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(["run", "--config", "/nowhere", *arguments])
    told = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert told[0] == f"--vmodule: is kube-scheduler's and not taken: {REFUSED['--vmodule']}"
    assert len(told) == sum(argument.startswith("--") for argument in arguments)


@pytest.mark.parametrize("switch", ["--leader-elect", "--profiling"])
def test_a_switch_with_its_value_apart_is_told_how_to_give_it(capsys, switch):
    with pytest.raises(SystemExit) as ended:
        main(["run", switch, "false"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{switch}: takes its value after '=': use {switch}=false\n"


def test_another_command_has_flags_of_its_own(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--vmodule"])
    assert (ended.value.code, "No such option" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_alone_means_true(capsys, tmp_path, switch):
    with pytest.raises(SystemExit) as ended:
        main(["run", "--kubeconfig", str(tmp_path / "none"), switch])
    assert (ended.value.code, "requires an argument" in capsys.readouterr().err) == (2, False)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--show-hidden-metrics-for-version=next", "--show-hidden-metrics-for-version: Invalid value"),
        ("--show-hidden-metrics-for-version=1.20", "--show-hidden-metrics-for-version: Invalid value"),
        ("--log-flush-frequency=5", "--log-flush-frequency: Invalid value"),
        ("--log-flush-frequency=-1s", "--log-flush-frequency: Invalid value"),
        ("--kube-api-burst=0", "--kube-api-burst: Invalid value"),
        ("--pod-max-in-unschedulable-pods-duration=0s", "--pod-max-in-unschedulable-pods-duration: Invalid value"),
        ("--profiling=maybe", "--profiling: Invalid value"),
    ],
)
def test_values_that_are_none_are_told_with_their_flag(capsys, tmp_path, flag, said):
    with pytest.raises(SystemExit) as ended:
        main(["run", "--kubeconfig", str(tmp_path / "none"), flag])
    assert (ended.value.code, said in capsys.readouterr().err) == (2, True)


def test_the_effective_configuration_is_written_and_nothing_is_run(tmp_path):
    written = tmp_path / "written.yaml"
    flags = ["--profiling=false", "--kube-api-qps=7.5", "--kube-api-burst=9", "--leader-elect-resource-name=x"]
    main_ends(0, "run", "--write-config-to", str(written), *flags)
    text = written.read_text()
    for line in ("enableProfiling: false", "qps: 7.5", "burst: 9", "resourceName: x"):
        assert line in text


def test_the_effective_configuration_may_be_written_to_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main_ends(0, "run", "--write-config-to", "-")
    assert capsys.readouterr().out.startswith("apiVersion: kubescheduler.config.k8s.io/v1\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flags", [["-v=3"], ["-v", "3"], ["-v3"], ["--v=3"]])
def test_the_level_of_the_log_is_written_as_gos_flags_are(tmp_path, flags):
    main_ends(0, "run", "--write-config-to", str(tmp_path / "written.yaml"), *flags)


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_is_empty_was_not_given(place):
    assert as_go_reads(["run", f"{place}=", "-v", "2", place, ""]) == ["run", "-v", "2"]
    assert as_go_reads(["run", f"{place}=x", place, "y"]) == ["run", f"{place}=x", place, "y"]


def test_other_arguments_may_be_empty():
    assert as_go_reads(["run", "--disabled-metrics=", "--bind-address", ""]) == [
        "run",
        "--disabled-metrics=",
        "--bind-address",
        "",
    ]


@pytest.mark.parametrize("qps", ["0", "-1"])
def test_without_a_rate_there_may_be_no_burst(tmp_path, qps):
    flags = [f"--kube-api-qps={qps}", "--kube-api-burst=0"]
    main_ends(0, "run", "--write-config-to", str(tmp_path / "written.yaml"), *flags)


def test_beside_a_file_deprecated_flags_are_ignored_and_that_is_told(tmp_path, capsys):
    config, written = tmp_path / "config.yaml", tmp_path / "written.yaml"
    config.write_text("{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}")
    main_ends(0, "run", "--config", str(config), "--write-config-to", str(written), "--profiling=false")
    assert "enableProfiling: true" in written.read_text()
    assert "--profiling: ignored, since --config is given" in capsys.readouterr().err


def main_ends(code, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == code
