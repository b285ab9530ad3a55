from e2e.controlplane.kubernetes_version import kubernetes_version, minor_version
from prometheus_client import CollectorRegistry

from bayplan import __version__
from bayplan.config.feature_gates import parse_feature_gates
from bayplan.server.metrics import AtScrape
from bayplan.server.state import build_metrics


def labels_of(name, gates=()):
    (family,) = (family for family in build_metrics(parse_feature_gates(gates)) if family.name == name)
    return [(sample.labels, sample.value) for sample in family.samples]


def test_the_build_is_named():
    ((labels, value),) = labels_of("bayplan_build_info")
    assert (labels["version"], value) == (__version__, 1)


def test_the_version_of_kubernetes_is_that_of_the_judge():
    ((labels, value),) = labels_of("kubernetes_build_info")
    major, minor = minor_version(kubernetes_version()).split(".")
    assert (labels["major"], labels["minor"], value) == (major, minor, 1)
    assert labels["git_version"] == f"v{major}.{minor}.0+bayplan.{__version__}"


def test_the_gates_that_are_looked_at_show_what_was_asked_for():
    def enabled(gates):
        return {labels["name"]: value for labels, value in labels_of("kubernetes_feature_enabled", gates)}

    default, changed = enabled([]), enabled(["StorageCapacityScoring=false"])
    assert (default["StorageCapacityScoring"], changed["StorageCapacityScoring"]) == (1, 0)
    assert {name for name in default if default[name] != changed[name]} == {"StorageCapacityScoring"}


def test_a_scrape_may_ask_again_and_again():
    registry = CollectorRegistry()
    registry.register(AtScrape(lambda: build_metrics(parse_feature_gates([]))))
    assert len(list(registry.collect())) == len(list(registry.collect())) == 3
