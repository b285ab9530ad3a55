"""Every Policy that is accepted can be written as v1, and means the same then."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.config.configurations import POLICY, load
from tests.examples import examples

from bayplan.config.convert import to_minimal_yaml
from bayplan.config.errors import ConfigurationError
from bayplan.config.plugin_sets import expand_profiles
from bayplan.config.policy_table import PREDICATES, PRIORITIES
from bayplan.plugins.registry import in_tree_extends


def some(**fields):
    return st.fixed_dictionaries({}, optional=fields)


def built(**fields):
    return st.fixed_dictionaries(fields)


def usable(table):
    return st.sampled_from(sorted(name for name, successor in table.items() if not successor.refused))


_labels = st.sampled_from(["zone", "rack"])
_weights = st.sampled_from([1, 1, 1, 2, 2**31 - 1])
# A few names, so that some are listed twice.
_names = st.sampled_from(["Mine", "Other", "Third"])
_shapes = st.sampled_from([(0, 10), (10, 0), (0, 100)]).map(
    lambda scores: [{"utilization": 0, "score": scores[0]}, {"utilization": 100, "score": scores[1]}]
)
_resources = st.fixed_dictionaries(
    {"name": st.sampled_from(["CPU", "Memory", "memory", "a.com/b"])},
    optional={"weight": st.sampled_from([0, 1, 3, 100, 300])},
)
_ratio = st.fixed_dictionaries({"shape": _shapes}, optional={"resources": st.lists(_resources, max_size=3)})
_predicates = built(name=usable(PREDICATES)) | built(
    name=_names, argument=built(labelsPresence=built(labels=st.lists(_labels, max_size=2), presence=st.booleans()))
)
_spread_over = built(serviceAntiAffinity=built(label=_labels))
_priorities = st.one_of(
    built(name=usable(PRIORITIES), weight=_weights),
    built(name=_names, weight=_weights, argument=built(requestedToCapacityRatioArguments=_ratio)),
    built(name=_names, weight=_weights, argument=built(labelPreference=built(label=_labels, presence=st.booleans()))),
    built(name=_names, weight=_weights, argument=_spread_over),
)
_extender = some(
    urlPrefix=st.sampled_from(["http://127.0.0.1:1", ""]),
    FilterVerb=st.just("filter"),
    prioritizeVerb=st.just("prioritize"),
    enableHttps=st.booleans(),
    httpTimeout=st.integers(0, 10**12) | st.just("1m30s"),
    tlsConfig=some(insecure=st.booleans(), CAData=st.just("aGk=")),
).map(lambda fields: {"weight": 3, **fields})
policies = some(
    predicates=st.lists(_predicates, max_size=4),
    priorities=st.lists(_priorities, max_size=4)
    | st.lists(built(name=_names, weight=_weights, argument=_spread_over), max_size=4),
    hardPodAffinitySymmetricWeight=st.integers(0, 100),
    alwaysCheckAllPredicates=st.booleans(),
    extenders=st.lists(_extender, max_size=2),
).map(POLICY.__or__)


@given(policies)
@settings(max_examples=examples(150))
def test_an_accepted_policy_is_written_as_v1_and_reads_back_equal(policy):
    with TemporaryDirectory() as directory:
        path = Path(directory)
        configuration = accepted(path, policy)
        assume(configuration is not None)
        assert load(path, to_minimal_yaml(configuration)) == configuration
        assert expand_profiles(configuration, in_tree_extends)


def accepted(directory, policy):
    try:
        return load(directory, policy)
    except ConfigurationError:
        return None
