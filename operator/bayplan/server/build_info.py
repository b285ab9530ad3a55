"""Which build runs, whose decisions it takes, and with which features: what never changes while it runs."""

import platform
from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from bayplan import __version__
from bayplan.config.feature_gates import KUBERNETES, FeatureGates, Stage
from bayplan.server.state import labelled


class BuildInfoCollector(Collector):
    """Exports the build, and the feature gates that are looked at (component-base: prometheus/version and feature)."""

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def collect(self) -> Iterable[Metric]:
        """The three metrics."""
        yield labelled(
            "bayplan_build_info",
            "Always 1; its labels say which build runs.",
            ("version", "python_version"),
            [((__version__, platform.python_version()), 1)],
        )
        # Whose scheduler it decides as: dashboards compare it between components.
        major, minor = KUBERNETES.split(".")
        values = {
            "build_date": "",
            "compiler": platform.python_implementation(),
            "git_commit": "",
            "git_tree_state": "",
            "git_version": f"v{major}.{minor}.0+bayplan.{__version__}",
            "go_version": "",
            "major": major,
            "minor": minor,
            "platform": f"{platform.system().lower()}/{platform.machine()}",
        }
        yield labelled(
            "kubernetes_build_info",
            "Always 1; its labels say which version of Kubernetes decisions are those of.",
            tuple(values),
            [(tuple(values.values()), 1)],
        )
        yield labelled(
            "kubernetes_feature_enabled",
            "Stage and enablement of the features that are looked at.",
            ("name", "stage"),
            # As in kube-scheduler, where what is stable has no stage.
            [
                ((name, "" if stage is Stage.GA else stage.value), float(enabled))
                for name, stage, enabled in self._gates.switched()
            ],
        )
