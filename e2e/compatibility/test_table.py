"""What `make compatibility` builds and prints."""

import datetime as dt

from e2e.compatibility.__main__ import Outcome, outcome_of
from e2e.compatibility.api_server import VERSIONS, go_mod
from e2e.controlplane.kubernetes_version import kubernetes_version, minor_version


def test_every_minor_version_from_the_first_to_the_one_of_the_other_tests_has_a_patch_release() -> None:
    minors = [minor_version(version) for version in VERSIONS]
    assert minors == [f"1.{minor}" for minor in range(33, int(minors[-1].split(".")[1]) + 1)]
    assert VERSIONS[-1] == kubernetes_version()


def test_the_module_takes_the_staging_modules_that_were_published_with_the_version() -> None:
    text = go_mod("1.34.4", ["k8s.io/api", "k8s.io/apiserver"])
    assert "require k8s.io/kubernetes v1.34.4\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.34.4\n\tk8s.io/apiserver => k8s.io/apiserver v0.34.4\n" in text
    assert "tool k8s.io/kubernetes/cmd/kube-apiserver\n" in text


def test_a_row_says_how_many_scenarios_passed() -> None:
    outcome = outcome_of("1.34.4", "...\n2 failed, 20 passed, 1 error in 61.00s\n", 61.4)
    assert outcome == Outcome("1.34.4", 20, 3, 61.4)
    assert outcome.row(dt.date(2026, 11, 22)) == "| 1.34.4 | 20 of 23 | 61 s | 2026-11-22 |"
