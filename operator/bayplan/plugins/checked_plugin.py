"""Checks every answer of a plugin from outside, so that a wrong one fails a pod and not the scheduler."""

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from bayplan.framework.interface import MAX_NODE_SCORE, PostFilterResult, PreFilterResult, Wait
from bayplan.framework.status import Code, Normalize, Reads, Reason, Status, Traits

logger = logging.getLogger(__name__)

# Normalising multiplies by 100 in 64 bits.
_MAX_RAW_SCORE: Final = (2**63 - 1) // MAX_NODE_SCORE
_Arguments = tuple[Any, ...]
_Check = Callable[[object, _Arguments, Normalize], str]
"""Says what is wrong with the answer to these arguments, "" if nothing is."""


class PluginError(Exception):
    """A plugin from outside raised or answered nonsense; the text names it and is the user's."""


def traits_of(plugin: object) -> Traits:
    """The `traits` of a plugin from outside, or those it declares by the single attributes `reads` and `normalize`."""
    declared = getattr(plugin, "traits", None)
    if isinstance(declared, Traits):
        return declared
    return Traits(reads=getattr(plugin, "reads", Reads.NODE), normalize=getattr(plugin, "normalize", Normalize.NONE))


class CheckedPlugin:
    """Stands for a plugin from outside: has the methods that one has, and lets only answers of the right kind through.

    The engine relies on it: a wrong answer becomes a PluginError, which fails the cycle of that pod only. What runs
    outside a cycle never raises: pre_enqueue then holds the pod, unreserve and post_bind are logged.
    """

    name: ClassVar[str]
    traits: ClassVar[Traits]

    def __init__(self, plugin: object) -> None:
        self._plugin = plugin
        vars(self)["name"] = getattr(plugin, "name", "")
        # Nobody outside needs to know what pods of one template share.
        vars(self)["traits"] = replace(traits_of(plugin), signs_more=True)
        for method in METHODS:
            if callable(getattr(plugin, method, None)):
                setattr(self, method, self._guard(method))

    def _guard(self, method: str) -> Callable[..., Any]:
        call: Callable[..., Any] = getattr(self._plugin, method)
        check, normalize = METHODS[method].check, self.traits.normalize

        def guarded(*arguments: object) -> object:
            cause: Exception | None = None
            try:
                answer = call(*arguments)
                problem = "" if check is None else check(answer, arguments, normalize)
            except Exception as error:  # noqa: BLE001  whatever it raises is its own failure
                cause, problem = error, f"{type(error).__name__}: {error}"
            return self._failed(method, problem, cause) if problem else answer

        return guarded

    def _failed(self, method: str, problem: str, cause: Exception | None) -> Status | None:
        point = "".join(word.capitalize() for word in method.split("_"))
        message = f'running {point} plugin "{self.name}": {problem}'
        if method == "pre_enqueue":
            logger.error("plugin failed, pod is held plugin=%s error=%r", self.name, problem)
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (message,))
        if method in {"unreserve", "post_bind"}:
            logger.error("plugin failed plugin=%s method=%s error=%r", self.name, method, problem)
            return None
        raise PluginError(message) from cause


def _is(kind: type) -> _Check:
    def check(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
        return "" if isinstance(answer, kind) else f"answered {_shown(answer)}, not a {kind.__name__}"

    return check


def _hashable(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if not isinstance(answer, Hashable):
        return f"answered {_shown(answer)}, which is not hashable"
    hash(answer)
    return ""


def _array(dtype: type[np.generic], problem_of: Callable[[NDArray[Any], Normalize], str]) -> _Check:
    def check(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
        if problem := _array_problem(answer, dtype, arguments):
            return problem
        assert isinstance(answer, np.ndarray)
        return problem_of(answer, normalize) if len(answer) else ""

    return check


def _code_problem(codes: NDArray[np.int8], normalize: Normalize) -> str:
    if int(codes.min()) < 0 or int(codes.max()) > Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return "answered a code that is none of SUCCESS, UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE"
    return ""


def _reasons(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if not isinstance(answer, Sequence) or not all(isinstance(each, Reason) for each in answer):
        return f"answered {_shown(answer)}, not Reasons"
    for reason in answer:
        if not isinstance(reason.text, str):
            return f"answered a reason that is {_shown(reason.text)}, not text"
        if problem := _array_problem(reason.holds, np.bool_, arguments):
            return problem
    return ""


def _score_problem(scores: NDArray[np.int64], normalize: Normalize) -> str:
    if normalize is Normalize.CUSTOM:
        return ""
    return _range_problem(scores, MAX_NODE_SCORE if normalize is Normalize.NONE else _MAX_RAW_SCORE)


def _pre_score(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if not isinstance(answer, Status):
        return _is(Status)(answer, arguments, normalize)
    return "" if answer.ok else answer.message or f"answered {answer.code.name}"


def _pre_filter(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if not isinstance(answer, PreFilterResult):
        return _is(PreFilterResult)(answer, arguments, normalize)
    if answer.status.code is Code.ERROR:
        return answer.status.message or "answered ERROR"
    return "" if answer.node_names is None else _is(frozenset)(answer.node_names, arguments, normalize)


def _permit(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if not isinstance(answer, Wait):
        return "" if isinstance(answer, Status) else f"answered {_shown(answer)}, neither a Status nor a Wait"
    seconds = answer.timeout_seconds
    if not isinstance(seconds, int | float) or not seconds >= 0:
        return f"answered a Wait of {seconds!r} seconds, which is no time"
    return ""


def _array_problem(answer: object, dtype: type[np.generic], arguments: _Arguments) -> str:
    if not isinstance(answer, np.ndarray):
        return f"answered {_shown(answer)}, not a numpy array"
    length = len(arguments[3])
    if answer.dtype != dtype or answer.shape != (length,):
        return f"answered {answer.dtype} of shape {answer.shape}, not {np.dtype(dtype)} of shape {(length,)}"
    return ""


def _range_problem(scores: NDArray[np.int64], largest: int) -> str:
    for worst in (int(scores.min()), int(scores.max())):
        if not 0 <= worst <= largest:
            return f"answered the score {worst}, it should be in the range of [0, {largest}]"
    return ""


def _shown(answer: object) -> str:
    return "None" if answer is None else f"a {type(answer).__name__}"


@dataclass(frozen=True, slots=True)
class Method:
    """A method that plugins from outside may have: what it is given, what checks its answer, and what goes with it."""

    parameters: tuple[str, ...]
    check: _Check | None = None
    partner: str = ""
    """A method that a plugin must have, too."""


METHODS: Final[Mapping[str, Method]] = {
    "sign_pod": Method(("pod",), _hashable),
    "events_to_register": Method(()),
    "pre_enqueue": Method(("pod",), _is(Status)),
    "pre_filter": Method(("state", "pod", "nodes"), _pre_filter),
    "filter": Method(("state", "pod", "nodes", "rows"), _array(np.int8, _code_problem), partner="reasons"),
    "reasons": Method(("state", "pod", "nodes", "rows"), _reasons),
    "post_filter": Method(("state", "pod", "nodes", "rejections"), _is(PostFilterResult)),
    "pre_score": Method(("state", "pod", "nodes", "feasible"), _pre_score),
    "score": Method(("state", "pod", "nodes", "rows"), _array(np.int64, _score_problem)),
    "normalize_score": Method(
        ("state", "pod", "nodes", "rows", "scores"),
        _array(np.int64, lambda scores, _: _range_problem(scores, MAX_NODE_SCORE)),
    ),
    "reserve": Method(("state", "pod", "node_name"), _is(Status), partner="unreserve"),
    "unreserve": Method(("state", "pod", "node_name")),
    "permit": Method(("state", "pod", "node_name"), _permit),
    "post_bind": Method(("pod", "node_name")),
}
"""All methods of plugins from outside that are called."""
