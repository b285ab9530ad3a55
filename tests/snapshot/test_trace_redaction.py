"""A redacted trace tells no names, and replays as the one that does."""

import pytest
from tests.replay.traces import make_pool, make_template, make_trace, replayed

from bayplan.replay.trace import StrictTaint, StrictToleration, trace_lines
from bayplan.snapshot.redaction import redacted

KEY = b"k" * 32
POOLS = [
    make_pool("secret-type", labels={"secret.example.com/team": "secret-a"}, daemons={"cpu": 1}),
    make_pool("secret-other", cpu=8, taints=[StrictTaint("secret-only", "secret-b", effect="NoSchedule")]),
    make_pool("secret-rated", taints=[StrictTaint("secret-rate", "950", effect="NoExecute")]),
]
TEMPLATES = [
    make_template("template-1", node_selector={"secret.example.com/team": "secret-a"}),
    make_template("template-2", cpu=7, tolerations=[StrictToleration("secret-only", "Equal", "secret-b")]),
    make_template("template-3", cpu=3, tolerations=[StrictToleration("secret-rate", "Gt", "900")]),
]
TRACE = make_trace(
    [(10.0 * at, 60.0 + at, f"template-{1 + at % 3}") for at in range(30)], templates=TEMPLATES, pools=POOLS
)


def test_no_label_taint_or_type_is_told():
    text = b"".join(trace_lines(redacted(TRACE, KEY))).decode()
    assert "secret" not in text
    assert [pool.name for pool in redacted(TRACE, KEY).header.pools] == ["pool-1", "pool-2", "pool-3"]


def test_every_pod_fits_where_it_did():
    outcome, anew = replayed(TRACE), replayed(redacted(TRACE, KEY))
    assert outcome.bound == 30
    assert (anew.bound, anew.core_hours_paid, anew.nodes_made) == (30, outcome.core_hours_paid, outcome.nodes_made)


def test_another_key_gives_other_hashes_and_the_same_the_same():
    assert redacted(TRACE, KEY).header == redacted(TRACE, KEY).header
    assert redacted(TRACE, KEY).header != redacted(TRACE, b"other" * 8).header


@pytest.mark.parametrize("key", ["node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"])
def test_kubernetes_own_keys_stay_and_their_values_do_not(key):
    (pool,) = redacted(make_trace([], pools=[make_pool(labels={key: "secret-zone"})]), KEY).header.pools
    assert [*pool.labels] == [key]
    assert "secret" not in pool.labels[key]
