"""A simulation's report with all that is read of its decisions, in memory."""

from bayplan.simulate.report import Report
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import tracing


def run_explained(simulator: Simulator) -> Report:
    simulator.reader = tracing(simulator.cache.nodes)
    while (step := simulator.step()) is not None:
        simulator.report_of(step.pod).attempts[-1] = step.explained_attempt()
    return simulator.report()
