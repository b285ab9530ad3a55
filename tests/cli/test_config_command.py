"""`bayplan config check`, `show` and `convert`, as a shell sees them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner

from bayplan.cli import main
from bayplan.config.load import load_configuration

EXAMPLES = sorted(
    path for path in (Path(__file__).parents[2] / "examples").iterdir() if path.suffix in {".json", ".yaml"}
)
HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


STRATEGY = "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]}]\n"


def run(*arguments, given=None):
    with CliRunner().isolation(input=given) as (out, err, _), pytest.raises(SystemExit) as ended:
        main(["config", *map(str, arguments)])
    return SimpleNamespace(exit_code=ended.value.code, stdout=out.getvalue().decode(), stderr=err.getvalue().decode())


def write(directory, content, name="config.yaml"):
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_good_file_is_ok_and_its_profiles_are_named(tmp_path):
    path = write(tmp_path, HEADER + "profiles: [{schedulerName: a}, {schedulerName: b}]\n")
    result = run("check", path)
    assert (result.exit_code, result.stdout) == (0, f"{path}: ok: 2 profiles: a, b\n")
    assert run("check", write(tmp_path, HEADER)).stdout == f"{path}: ok: 1 profile: bayplan\n"


LEAST = "args: {scoringStrategy: {type: LeastAllocated}}"


@pytest.mark.parametrize(
    ("strategy", "is_noted"),
    [("", True), ("LeastAllocated", False), ("MostAllocated", False)],
)
def test_a_profile_that_names_no_scoring_strategy_is_noted_to_spread(tmp_path, strategy, is_noted):
    packs = "  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]\n"
    own = packs.replace("MostAllocated", strategy) if strategy else ""
    path = write(tmp_path, f"{HEADER}profiles:\n- schedulerName: packs\n{packs}- schedulerName: x\n{own}")
    result = run("check", path)
    spreads = "names no scoring strategy: pods spread; MostAllocated packs them"
    told = f'{path}: note: profile "x" {spreads}\n'
    assert (result.exit_code, result.stderr) == (0, told if is_noted else "")


@pytest.mark.parametrize(
    ("content", "is_noted"),
    [
        (f"# not LeastAllocated\n{HEADER}", True),
        (f"{HEADER}profiles: [null]\n", True),
        ("apiVersion: v1\nkind: Policy\n", True),
        ("apiVersion: v1\nkind: Policy\npriorities: [{name: LeastRequestedPriority, weight: 1}]\n", False),
        ("apiVersion: v1\nkind: Policy\npriorities: [{name: MostRequestedPriority, weight: 1}]\n", False),
        (f"{HEADER}profiles: [{{plugins: {{score: {{disabled: [{{name: NodeResourcesFit}}]}}}}}}]\n", False),
        (f"{HEADER}profiles: [{{plugins: {{score: {{disabled: [{{name: ImageLocality}}]}}}}}}]\n", True),
        (f"{HEADER.replace('v1', 'v1alpha1')}pluginConfig: [{{name: NodeResourcesFit, {LEAST}}}]\n", False),
    ],
)
def test_what_a_file_says_of_strategies_counts_and_not_its_words(tmp_path, content, is_noted):
    result = run("check", write(tmp_path, content))
    assert (result.exit_code, "names no scoring strategy" in result.stderr) == (0, is_noted)


def test_a_file_with_an_extender_is_ok(tmp_path):
    path = write(
        tmp_path, HEADER + STRATEGY + "extenders: [{urlPrefix: 'http://127.0.0.1:1/', preemptVerb: preempt}]\n"
    )
    assert (run("check", path).exit_code, run("check", path).stderr) == (0, "")


def test_check_reads_the_certificates_that_run_needs_and_the_others_do_not(tmp_path):
    extenders = "extenders: [{urlPrefix: 'https://x', tlsConfig: {insecure: true, caFile: /nowhere}}]\n"
    path = write(tmp_path, HEADER + extenders + "parallelism: 0\n")
    result = run("check", path)
    clash = "specifying a root certificates file with the insecure flag is not allowed"
    assert (result.exit_code, result.stderr.splitlines()) == (
        2,
        [
            f"{path}:4:1: parallelism: Invalid value: 0: should be an integer value greater than zero",
            f"{path}:3:66: extenders[0].tlsConfig.caFile: cannot be read: No such file or directory",
            f"{path}:3:38: extenders[0].tlsConfig: {clash}",
            f"{path}:4:1: warning: parallelism: has no effect: bayplan looks at all nodes at once",
        ],
    )
    path = write(tmp_path, HEADER + extenders)
    assert [run(command, path).exit_code for command in ("check", "show", "convert")] == [2, 0, 0]


@pytest.mark.parametrize("command", ["check", "convert"])
def test_what_has_no_successor_goes_to_standard_error_with_its_field(tmp_path, command):
    listed = "[{name: MostRequestedPriority, weight: 1}, {name: ResourceLimitsPriority, weight: 1}]"
    path = write(tmp_path, f"kind: Policy\napiVersion: v1\npriorities: {listed}\n")
    result = run(command, path)
    assert (result.exit_code, bool(result.stdout)) == (0, True)
    dropped = "is dropped: kube-scheduler has it no longer, and limits do not choose a node"
    line = f"priorities[1].name: ResourceLimitsPriority: {dropped}"
    assert result.stderr.splitlines()[-1] == (
        f"{path}: {line}" if command == "convert" else f"{path}:3:57: warning: {line}"
    )


def test_all_errors_go_to_standard_error_one_a_line(tmp_path):
    path = write(tmp_path, HEADER + "parallelism: 0\nprofiles: 5\nx: 1\n")
    result = run("check", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        f"{path}:3:1: parallelism: Invalid value: 0: should be an integer value greater than zero",
        f"{path}:4:1: profiles: Invalid value: 5: must be a list",
        f"{path}:5:1: x: unknown field",
        f"{path}:3:1: warning: parallelism: has no effect: bayplan looks at all nodes at once",
    ]


def test_plugin_sets_that_do_not_work_out_are_told_together_with_all_else(tmp_path):
    disabled = "{queueSort: {disabled: [{name: '*'}]}, bind: {disabled: [{name: '*'}]}}"
    unknown = "{filter: {enabled: [{name: Nope}]}, bind: {disabled: [{name: '*'}]}}"
    profiles = f"profiles: [{{plugins: {disabled}}}, {{schedulerName: b, plugins: {unknown}}}]\n"
    result = run("check", write(tmp_path, HEADER + "parallelism: 0\n" + profiles))
    fields = [line.split(": ")[1] for line in result.stderr.splitlines() if ": warning: " not in line]
    assert sorted(fields) == [
        "parallelism",
        "profiles[0].plugins.bind",
        "profiles[0].plugins.queueSort",
        "profiles[0].schedulerName",
        # Of a set with an unknown plugin nothing else can be told.
        "profiles[1].plugins.filter.enabled[0]",
        "profiles[1].plugins.queueSort",
    ]


def test_plugin_sets_that_do_not_work_out_are_errors_too(tmp_path):
    path = write(tmp_path, HEADER + "profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]\n")
    for command in ("check", "show", "convert"):
        result = run(command, path)
        assert result.exit_code == 2
        assert result.stderr == (
            f'{path}:3:23: profiles[0].plugins.score: plugin "NodeName" does not extend ScorePlugin plugin\n'
        )


@pytest.mark.parametrize("command", ["check", "show", "convert"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\x7fELF\x02\x01\x01\x00\xff", "is not UTF-8 text: byte 8 is wrong"),
        (b"x" * 10_000_000, "is larger than 1048576 bytes"),
    ],
    ids=["missing", "binary", "large"],
)
def test_a_file_that_is_no_configuration_is_one_line_and_exit_code_2(tmp_path, command, content, expected):
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    result = run(command, path)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{path}: ")
    assert line.endswith(expected)


def test_a_pipe_is_read_as_process_substitution_has_it_and_one_without_a_writer_is_refused(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = run("check", pipe)
    assert (result.exit_code, result.stderr) == (2, f"{pipe}: is a pipe that nobody writes to\n")
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as file:
        file.write(HEADER)
    assert run("check", f"/dev/fd/{reader}").exit_code == 0
    os.close(reader)


def test_a_file_name_that_is_no_text_is_escaped(tmp_path):
    path = write(tmp_path, HEADER, "a\nb\udcff.yaml")
    assert run("check", path).stdout == f'"{tmp_path}/a\\nb\\udcff.yaml": ok: 1 profile: bayplan\n'
    path = write(tmp_path, HEADER + "x: 1", "a\nb.yaml")
    assert run("check", path).stderr == f'"{tmp_path}/a\\nb.yaml":3:1: x: unknown field\n'


def test_show_without_a_file_shows_what_bayplan_does_by_default(tmp_path):
    shown = run("show")
    assert shown.exit_code == 0
    assert "type: MostAllocated" in shown.stdout
    assert "- schedulerName: bayplan\n" in shown.stdout
    assert run("check", write(tmp_path, shown.stdout)).exit_code == 0


def test_show_shows_merged_plugins_and_defaults(tmp_path):
    shown = run("show", write(tmp_path, HEADER)).stdout
    assert "type: LeastAllocated" in shown
    assert "- name: TaintToleration\n        weight: 3\n" in shown
    assert "qps: 50\n" in shown


def test_the_only_profile_can_be_renamed(tmp_path):
    path = write(tmp_path, HEADER)
    assert run("check", path, "--scheduler-name", "x").stdout == f"{path}: ok: 1 profile: x\n"
    assert "schedulerName: x\n" in run("show", "--scheduler-name", "x").stdout
    assert "schedulerName: x\n" in run("convert", path, "--scheduler-name", "x").stdout
    result = run("show", "--scheduler-name", "")
    assert (result.exit_code, result.stderr) == (2, "--scheduler-name: Required value\n")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_fine_and_converts_to_an_equal_v1_file(tmp_path, example):
    assert run("check", example).exit_code == 0
    converted = run("convert", example)
    assert converted.exit_code == 0
    assert converted.stdout.startswith(HEADER)
    assert load_configuration(write(tmp_path, converted.stdout)) == load_configuration(example)


def test_the_installed_command_exits_with_2_and_without_a_traceback(tmp_path):
    path = write(tmp_path, "a: [")
    code = "from bayplan.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "config", "check", path], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith(f"{path}:2:1: is neither YAML nor JSON")


@pytest.mark.parametrize("command", ["check", "show", "convert"])
def test_every_command_explains_itself(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Configuration file, YAML or JSON" in result.stdout


def test_feature_gates_are_checked_with_the_file(tmp_path):
    path = write(tmp_path, HEADER + STRATEGY)
    result = run("check", path, "--feature-gates", "Nonsense=true")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "--feature-gates: unrecognized feature gate: Nonsense\n"
    result = run("check", path, "--feature-gates", "StorageCapacityScoring=false,OpenAPIEnums=false")
    assert (result.exit_code, result.stdout) == (0, f"{path}: ok: 1 profile: bayplan\n")
    assert result.stderr == "--feature-gates: OpenAPIEnums changes nothing in bayplan\n"


def test_all_phases_are_told_at_once_each_with_its_place(tmp_path):
    profiles = """profiles:
- schedulerName: a
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: Most}}
- schedulerName: b
  plugins:
    score:
      enabled: [{name: NodeName}]
"""
    path = write(tmp_path, HEADER + "paralelism: 4\n" + profiles)
    result = run("check", path, "--feature-gates", "Nonsense=true")
    assert result.exit_code == 2
    told = [line.split(": ")[:2] for line in result.stderr.splitlines()]
    assert told == [
        ["--feature-gates", "unrecognized feature gate"],
        [f"{path}:8:30", "profiles[0].pluginConfig[0].args.scoringStrategy.type"],
        [f"{path}:3:1", "paralelism"],
        [f"{path}:11:5", "profiles[1].plugins.score"],
    ]


def test_remarks_are_written_for_programs_as_json(tmp_path):
    path = write(tmp_path, HEADER + "parallelism: 0\n")
    result = run("check", "-o", "json", path, "--feature-gates", "Nonsense=true")
    assert (result.exit_code, result.stderr) == (2, "")
    gate, error, warning = json.loads(result.stdout)
    assert (gate["file"], gate["path"], gate["line"]) == (None, "--feature-gates", None)
    assert error == {
        "file": str(path),
        "line": 3,
        "column": 1,
        "path": "parallelism",
        "severity": "error",
        "message": "Invalid value: 0: should be an integer value greater than zero",
    }
    assert (warning["severity"], warning["path"]) == ("warning", "parallelism")
    assert json.loads(run("check", "-o", "json", write(tmp_path, HEADER)).stdout) == []


def test_standard_input_is_a_file_that_is_called_by_a_dash(tmp_path):
    given = HEADER + "x: 1\n"
    result = run("check", "-", given=given)
    assert (result.exit_code, result.stderr) == (2, "-:3:1: x: unknown field\n")
    assert run("check", "-", given=HEADER).stdout == "-: ok: 1 profile: bayplan\n"
    assert run("convert", "-", given=HEADER).exit_code == 0
    assert "parallelism: 16" in run("show", "-", given=HEADER).stdout


def test_a_file_that_is_refused_for_its_depth_is_not_parsed_to_its_end(tmp_path):
    # It is no YAML further down, which only who reads on finds.
    reads = []
    file = write(tmp_path, "a: " + "[" * 80_000)
    with pytest.MonkeyPatch.context() as patch:
        parse = yaml.parse
        patch.setattr(
            yaml, "parse", lambda *given, **named: (reads.append(each) or each for each in parse(*given, **named))
        )
        assert run("check", str(file)).exit_code == 2
    assert len(reads) < 1_000


@pytest.mark.parametrize("command", ["check", "show", "convert"])
def test_a_file_without_a_name_is_told_as_such(command):
    result = run(command, "")
    assert (result.exit_code, result.stdout) == (2, "")
    shown = "[FILE]" if command == "show" else "FILE"
    assert result.stderr == f'{shown}: Invalid value: "": must be the name of a file\n'
