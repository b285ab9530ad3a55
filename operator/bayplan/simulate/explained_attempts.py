"""What each node said about each pod that was tried, held as compressed text and written piece by piece."""

import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from bayplan.explain.trace import ExplanationTooLargeError
from bayplan.simulate.report import AttemptReport, ClaimReport, PodReport, Report
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import Step

MAX_BYTES: Final = 256 << 20
"""Most compressed text that is held; a verdict takes some ten bytes."""

_QUICKLY: Final = 1


class _PodText(msgspec.Struct, rename="camel"):
    """A PodReport whose attempts are written already."""

    namespace: str
    name: str
    scheduler_name: str
    attempts: list[msgspec.Raw]
    claims: dict[str, ClaimReport] | msgspec.UnsetType


class ExplainedAttempts:
    """Holds the attempts of a report with all that explains them, which as objects take a hundred times as much."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str, int], bytes] = {}
        self._bytes = 0

    def step(self, simulator: Simulator) -> Step | None:
        """Have the simulator take a step, and hold all that its reader said of the decision.

        Raises:
            ExplanationTooLargeError: it would take more memory than it may.
        """
        step = simulator.step()
        if step is not None:
            self._add(simulator.report_of(step.pod), step.explained_attempt())
        return step

    def _add(self, pod: PodReport, attempt: AttemptReport) -> None:
        """Hold `attempt` in the place of the last one of `pod`."""
        text = zlib.compress(msgspec.json.encode(attempt), _QUICKLY)
        self._bytes += len(text)
        if self._bytes > MAX_BYTES:
            what = f"the explanations up to pod {pod.namespace}/{pod.name}"
            raise ExplanationTooLargeError(f"{what} take more than {MAX_BYTES >> 20} MiB")
        self._texts[pod.namespace, pod.name, len(pod.attempts) - 1] = text

    def pieces(self, report: Report) -> Iterator[bytes]:
        """Yield the report as `encode` writes it, a pod at a time, with what is held in the place of its attempts."""
        yield b'{\n  "pods": ['
        before = b"\n    "
        for pod in report.pods:
            yield before + _indented(self._text(pod), 4)
            before = b",\n    "
        yield b"\n  ]," if report.pods else b"],"
        rest = msgspec.json.format(
            msgspec.json.encode(Report([], report.summary, report.count, report.repack)), indent=2
        )
        yield rest.removeprefix(b'{\n  "pods": [],') + b"\n"

    def _text(self, pod: PodReport) -> bytes:
        attempts = [
            msgspec.Raw(msgspec.json.encode(attempt) if (held := self._held(pod, index)) is None else held)
            for index, attempt in enumerate(pod.attempts)
        ]
        return msgspec.json.encode(_PodText(pod.namespace, pod.name, pod.scheduler_name, attempts, pod.claims))

    def _held(self, pod: PodReport, index: int) -> bytes | None:
        text = self._texts.get((pod.namespace, pod.name, index))
        return None if text is None else zlib.decompress(text)


def _indented(text: bytes, columns: int) -> bytes:
    # A line break in a string is written as an escape.
    return msgspec.json.format(text, indent=2).replace(b"\n", b"\n" + b" " * columns)
