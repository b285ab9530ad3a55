"""Intervals are measured by a clock that does not step; the wall clock is for times that the API server sees."""

import re
from pathlib import Path

OPERATOR = Path(__file__).resolve().parents[1] / "operator" / "bayplan"

WALL = re.compile(r"\btime\.time\b|\bdatetime\.(now|utcnow|today)\b|\btime_ns\b|\bgmtime\(\)|\blocaltime\(\)")

MAY_READ_IT = {
    "api/token_source.py": "tokens say when they expire",
    "scheduler/api_calls.py": "Events and conditions say when they happened",
    "server/access.py": "certificates say when they end",
    "server/metrics.py": "a metric and /statusz say when the process began",
    "server/serving_tls.py": "certificates say when they begin and end",
    "server/debug.py": "/statusz says for how long it runs",
    "client/leader.py": "Leases say until when they hold",
    "controller/reload.py": "a metric says when the configuration was taken over",
    "controller/serving.py": "certificates say when they end",
    "plugins/registry.py": "pods say when they were started",
    "scheduler/recent_decisions.py": "answers say when something was decided",
    "live/inspector.py": "answers say when a pod is next tried",
    "live/cluster_view.py": "answers say when they were worked out, and a simulation begins then",
    "doctor/finding.py": "pods say when they were made",
    "web/sources.py": "a chart has the time below it",
}


def test_the_wall_clock_is_read_only_where_times_of_the_api_are_written_or_compared():
    found = {path.relative_to(OPERATOR).as_posix() for path in OPERATOR.rglob("*.py") if WALL.search(path.read_text())}
    assert found == MAY_READ_IT.keys()
