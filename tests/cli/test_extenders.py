"""What commands say of extenders in a configuration."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.config import config_app, load_checked

CLUSTER = Path(__file__).parents[2] / "examples" / "cluster" / "worked-example.yaml"
EXTENDER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
  - urlPrefix: http://127.0.0.1:1/
    filterVerb: filter
"""


def write(directory, text):
    path = directory / "scheduler.yaml"
    path.write_text(text)
    return path


def test_a_configuration_with_an_extender_is_fine(tmp_path):
    result = CliRunner().invoke(config_app, ["check", str(write(tmp_path, EXTENDER))])
    assert (result.exit_code, result.stderr) == (0, "")


def test_an_extender_may_take_part_in_preemption(tmp_path):
    configuration = load_checked(write(tmp_path, f"{EXTENDER}    preemptVerb: preempt\n"))
    assert configuration.extenders[0].preempt_verb == "preempt"


def test_a_simulation_says_that_it_calls_no_extender(tmp_path, capsys):
    from bayplan.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--config", str(write(tmp_path, EXTENDER)), "--cluster", str(CLUSTER)])
    assert not ended.value.code
    assert "extenders are not called in a simulation" in capsys.readouterr().err
