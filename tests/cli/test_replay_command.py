import gzip
import io
import json
import sys

import pytest
from tests.cli.test_main import ROOT, exit_code, shell

from bayplan.replay.generators import GENERATORS, generate

SMALL = ("--hours", "0.5", "--scale", "0.02")
PODS = len(generate("openb", seed=1, hours=0.5, scale=0.02).pods)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_trace_that_was_generated_is_replayed_as_its_generator_is(capsys):
    assert exit_code("trace", "generate", "openb", "--seed", "1", *SMALL, "-o", "trace.gz") == 0
    assert capsys.readouterr().err == f"trace.gz: {PODS} pods\n"
    with gzip.open("trace.gz") as opened:
        assert len(opened.read().splitlines()) == 1 + PODS
    assert exit_code("replay", "trace.gz") == 0
    of_file = capsys.readouterr().out
    assert exit_code("replay", "openb", *SMALL) == 0
    assert capsys.readouterr().out == of_file
    assert of_file.startswith("A: bayplan's default\n")


def test_several_configurations_are_compared_and_drawn(capsys, tmp_path):
    files = [str(ROOT / "examples" / name) for name in ("most-allocated.yaml", "kube-scheduler-default.yaml")]
    configs = [argument for file in files for argument in ("--config", file)]
    assert exit_code("replay", "openb", *SMALL, *configs, "--plot", "nodes.svg") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"A: {files[0]}", f"B: {files[1]}"]
    bound, waiting = (
        [int(number) for number in line.split()[-2:]]
        for line in lines
        if line.startswith(("pods bound", "pods waiting"))
    )
    assert [sum(each) for each in zip(bound, waiting, strict=True)] == [PODS, PODS]
    assert (tmp_path / "nodes.svg").read_text().startswith("<svg")


def test_what_is_in_the_file_of_results_is_not_run_again(capsys, tmp_path, monkeypatch):
    assert exit_code("replay", "openb", *SMALL, "--results", "results.jsonl") == 0
    first = capsys.readouterr().out
    monkeypatch.setattr("bayplan.replay.replay.Replay.run", lambda _: pytest.fail("is run again"))
    assert exit_code("replay", "openb", *SMALL, "--results", "results.jsonl") == 0
    assert capsys.readouterr().out == first
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 1


def test_several_seeds_give_means_with_their_confidence(capsys):
    assert exit_code("replay", "openb", *SMALL, "--seeds", "2", "-o", "json") == 0
    (told,) = json.loads(capsys.readouterr().out)["configurations"]
    assert len(told["outcomes"]) == 2
    assert told["paidOverAsked"]["confidence95"] > 0


def test_a_fixed_pool_has_the_nodes_of_the_trace(capsys):
    assert exit_code("replay", "openb", *SMALL, "--pool", "fixed", "-o", "json") == 0
    (told,) = json.loads(capsys.readouterr().out)["configurations"]
    counted = sum(pool.count for pool in generate("openb", seed=1, hours=0.5, scale=0.02).header.pools)
    assert told["outcomes"][0]["mostNodes"] == counted


def test_durations_of_the_pool_count(capsys):
    paid = []
    for after in ("10m", "1m"):
        assert exit_code("replay", "openb", *SMALL, "--scale-down-after", after, "-o", "json") == 0
        paid.append(json.loads(capsys.readouterr().out)["configurations"][0]["outcomes"][0]["nodeHours"])
    assert paid[0] > paid[1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("t", "--seeds", "2"),
            "--seeds, --hours, --scale and --hints are about made-up traces: ci-fleet, openb, openb-cpu",
        ),
        (("openb", "--provision", "-1s"), '--provision: Invalid value: "-1s": must be a duration such as "10s"'),
        (("openb", "--seeds", "0"), "Invalid value for '--seeds'"),
        (("openb", "--pool", "fixed", "--scale", "nan"), "Invalid value for '--scale'"),
        (("ci-fleet", "--pool", "fixed"), "--pool: no pool of the trace has a count of nodes"),
    ],
)
def test_wrong_flags_are_one_line_with_exit_code_2(capsys, arguments, problem):
    assert exit_code("replay", *arguments) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1


def test_a_seed_below_0_is_one_line_with_exit_code_2(capsys):
    assert exit_code("trace", "generate", "openb", "--seed", "-1", "-o", "t") == 2
    assert "Invalid value for '--seed': -1 is not in the range x>=0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "told"), [("ci_fleet", "ci_fleet"), ("c" * 5000, "ccc"), ("ci\nfleet", '"ci\\nfleet"')]
)
def test_a_name_that_is_no_trace_is_one_line_with_those_that_are_made_up(capsys, name, told):
    assert exit_code("replay", name) == 2
    problem = capsys.readouterr().err
    assert problem.endswith(f"{told}: neither a file nor a made-up trace, which are {', '.join(GENERATORS)}\n")
    assert problem.count("\n") == 1


def test_a_file_that_cannot_be_written_is_one_line_that_names_it(capsys):
    assert exit_code("trace", "generate", "openb", *SMALL, "-o", "missing/trace") == 1
    assert capsys.readouterr().err == "missing/trace: cannot be written: No such file or directory\n"
    ran = shell(f"replay openb {' '.join(SMALL)} --plot missing/nodes.svg")
    assert (ran.returncode, ran.stderr) == (1, "bayplan: missing/nodes.svg: No such file or directory\n")
    assert ran.stdout == "", "nothing is replayed before"


def test_results_that_cannot_be_read_are_one_line_that_names_the_file(capsys, tmp_path):
    (tmp_path / "folder").mkdir()
    assert exit_code("replay", "openb", *SMALL, "--results", "folder") == 2
    assert capsys.readouterr().err == "folder: cannot be read: Is a directory\n"


def test_pods_that_fit_on_no_node_are_told(capsys, tmp_path):
    (tmp_path / "trace").write_text(
        '{"pools": [{"name": "a", "capacity": {"cpu": 4}}], "templates": [{"name": "big", "requests": {"cpu": 5}}], '
        '"seconds": 60}\n{"arrivalSeconds": 1, "durationSeconds": 2, "template": "big"}\n'
    )
    assert exit_code("replay", "trace") == 0
    assert capsys.readouterr().err == 'no node of any pool holds a pod of "big": none of them gets a node\n'


def test_a_picture_takes_the_place_of_no_other_file(capsys, tmp_path):
    (tmp_path / "trace").write_text("kept")
    assert exit_code("replay", "trace", "--plot", "trace") == 2
    assert "--plot: trace is read or written as another file" in capsys.readouterr().err
    assert (tmp_path / "trace").read_text() == "kept"


def test_a_terminal_has_a_bar_of_what_is_done(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert exit_code("replay", "openb", *SMALL, "--seeds", "2") == 0
    shown = terminal.getvalue()
    assert "Replaying" in shown
    assert "2/2" in shown
    assert shown.endswith("\x1b[2K"), "it is gone at the end"


def test_a_picture_is_in_the_format_of_its_ending(tmp_path):
    assert exit_code("replay", "openb", *SMALL, "--plot", "nodes.png") == 0
    assert (tmp_path / "nodes.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_made_is_told_before_anything_is_replayed(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert exit_code("replay", "openb", "--plot", "nodes.png") == 2
    assert capsys.readouterr().err == "--plot: PNG needs the package resvg-py: pip install 'bayplan[png]'\n"
    assert [*tmp_path.iterdir()] == []
