"""Plugins that skip a pod in PreScore: whether their score is shown."""

import pytest
from tests.builders import make_node, make_pod_info

from bayplan.config.load import load_configuration
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import scoring

PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: bayplan
  plugins:
    score:
      disabled: {disabled}
"""


@pytest.mark.parametrize(("disabled", "shown"), [("[]", True), ("[{name: VolumeBinding}]", False)])
def test_a_plugin_that_scores_0_everywhere_is_shown_only_where_the_profile_has_it_score(tmp_path, disabled, shown):
    file = tmp_path / "configuration.yaml"
    file.write_text(PROFILE.format(disabled=disabled))
    simulator = Simulator(load_configuration(file))
    simulator.add(ClusterObjects(nodes=[make_node("a"), make_node("b")], pods=[make_pod_info("p")]))
    simulator.reader = scoring
    assert ("VolumeBinding" in simulator.step().read.scores) is shown
