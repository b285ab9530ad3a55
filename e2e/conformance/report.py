"""The table of a run of the suite."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from e2e.conformance.suite import Verdict


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of the suite on a cluster of its own; `problems` are what no spec reports."""

    title: str
    seed: int
    specs: int
    verdicts: tuple[Verdict, ...]
    problems: tuple[str, ...] = field(default=())

    @property
    def clean(self) -> bool:
        """Whether every spec ran and passed and nothing else went wrong."""
        passed = sum(verdict.passed for verdict in self.verdicts)
        return 0 < self.specs == passed and not self.problems


def table(passes: Sequence[Pass]) -> str:
    """Returns a Markdown table, one row a spec and one column a pass, then what failed and why."""
    heads = ["spec", "C", *(f"{run.title}, seed {run.seed}" for run in passes)]
    specs = {verdict.name: verdict for run in passes for verdict in run.verdicts}
    rows = [
        [_short(name), "C" if specs[name].conformance else "", *(_cell(run, name) for run in passes)]
        for name in sorted(specs)
    ]
    rows.append(["passed", "", *(f"{sum(each.passed for each in run.verdicts)} of {run.specs}" for run in passes)])
    lines = [heads, ["---"] * len(heads), *rows]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return "\n\n".join([text, *_failures(passes)])


def _cell(run: Pass, name: str) -> str:
    verdict = next((each for each in run.verdicts if each.name == name), None)
    if verdict is None:
        return "not run"
    return f"{verdict.seconds:.0f} s" if verdict.passed else verdict.state


def _short(name: str) -> str:
    """The name of a spec without the tags, which a column tells or all have."""
    words = [word for word in name.split(" ") if not (word.startswith("[") and word.endswith("]"))]
    return " ".join(words).replace("|", "\\|")


def _failures(passes: Sequence[Pass]) -> list[str]:
    failed = [
        f"{run.title}, seed {run.seed}: {verdict.name}: {verdict.state}\n{verdict.failure}"
        for run in passes
        for verdict in run.verdicts
        if not verdict.passed
    ]
    return failed + [f"{run.title}, seed {run.seed}: {problem}" for run in passes for problem in run.problems]
