"""Short ways to make traces: tests name only what they are about."""

from bayplan.config.load import default_configuration
from bayplan.replay.replay import PoolSettings, Replay
from bayplan.replay.trace import NodePool, PodTemplate, TraceHeader, TracePod, decode_trace, trace_of
from bayplan.simulate.input_files import InputFile, read_file

HOUR = 3600.0
PROVISION = 52.0
"""A pod that came when there was no node is tried again after 2, 5, 10, 19, 30, 41, 52 and 63 seconds."""


def make_pool(name="pool", *, cpu=4, memory="16Gi", **fields):
    """A pool of nodes with so much."""
    return NodePool(name, {"cpu": cpu, "memory": memory}, **fields)


def make_template(name="web", *, cpu=1, **fields):
    """A template of pods that ask for so much cpu."""
    return PodTemplate(name, {"cpu": cpu}, **fields)


def make_trace(pods, *, templates=None, pools=None, seconds=HOUR):
    """A trace of pods, each given as arrival, duration and, unless it is `web`, template."""
    made = [each if isinstance(each, TracePod) else TracePod(*each[:2], *(each[2:] or ("web",))) for each in pods]
    return trace_of(TraceHeader(pools or [make_pool()], templates or [make_template()], seconds), made)


def replayed(trace, configuration=None, *, provision=PROVISION, **settings):
    """What comes of a trace; without a configuration pods are packed."""
    return Replay(trace, configuration or default_configuration(), PoolSettings(provision=provision, **settings)).run()


def read_trace(path):
    """The trace in a file."""
    file = InputFile(str(path))
    return decode_trace(file, read_file(file))
