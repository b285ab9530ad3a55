"""The flags that bayplan answers are those that the real kube-scheduler has."""

import subprocess

import pytest
from e2e.controlplane.build import binary
from tests.config.record import DATA, FLAGS, flags_in

pytestmark = pytest.mark.controlplane


def test_the_recorded_flags_are_those_of_the_binary(control_plane_binaries: None) -> None:
    helped = subprocess.run([binary("kube-scheduler"), "--help"], capture_output=True, text=True, check=True).stdout
    assert flags_in(helped) == set((DATA / FLAGS).read_text().split())
