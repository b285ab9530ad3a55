"""All rows in order, and as documented: `python -m e2e.hostile.table` prints what docs/hostile-inputs.md has."""

from e2e.hostile.amounts import AMOUNTS
from e2e.hostile.api_requests import API_REQUESTS
from e2e.hostile.placement_rules import PLACEMENT_RULES
from e2e.hostile.pod_fields import POD_FIELDS
from e2e.hostile.row import BINDS, BOUND, FAILS, SILENT, Case, Row
from e2e.hostile.very_much import VERY_MUCH

ROWS: tuple[Row, ...] = tuple(
    sorted((*AMOUNTS, *POD_FIELDS, *PLACEMENT_RULES, *API_REQUESTS, *VERY_MUCH), key=lambda row: row.number)
)
CASES: dict[str, Case] = {name: case for row in ROWS for name, case in row.pods.items()}
HEAD = ("| # | Input | API server | bayplan | kube-scheduler, where not the same |", "|---|---|---|---|---|")


def markdown() -> str:
    """Returns the table as it stands in docs/hostile-inputs.md."""
    return "\n".join([*HEAD, *(_line(row) for row in ROWS)])


def _line(row: Row) -> str:
    statuses = sorted({request.status for request in (*row.before, *row.requests)} | ({201} if row.pods else set()))
    acts = list(dict.fromkeys(_act(case.verdict) for case in row.pods.values()))
    tests = ", ".join(f"`{test}`" for test in row.shown_by)
    note = f"{row.note} ({tests})" if tests else row.note
    others = "; ".join(dict.fromkeys(_act(case.kube_scheduler) for case in row.pods.values() if case.kube_scheduler))
    cells = (f"H{row.number}", row.what, ", ".join(map(str, statuses)), "; ".join(filter(None, [*acts, note])), others)
    return f"| {' | '.join(cells)} |"


def _act(verdict: str) -> str:
    if verdict in {BINDS, FAILS, SILENT}:
        return verdict
    return BINDS if verdict == BOUND else f'"{verdict}"'


if __name__ == "__main__":
    print(markdown())
