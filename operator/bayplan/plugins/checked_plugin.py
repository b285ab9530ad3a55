"""Checks every answer of a plugin from outside, so that a wrong one fails a pod and not the scheduler."""

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray

from bayplan.framework.interface import MAX_NODE_SCORE, Plugin, PostFilterResult, PreFilterResult
from bayplan.framework.status import Code, Reason, Status
from bayplan.framework.traits import Normalize, Reads, Traits

logger = logging.getLogger(__name__)

CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "sign_pod": ("pod",),
    "events_to_register": (),
    "pre_enqueue": ("pod",),
    "pre_filter": ("state", "pod", "nodes"),
    "filter": ("state", "pod", "nodes", "rows"),
    "reasons": ("state", "pod", "nodes", "rows"),
    "post_filter": ("state", "pod", "nodes", "rejections"),
    "pre_score": ("state", "pod", "nodes", "feasible"),
    "score": ("state", "pod", "nodes", "rows"),
    "normalize_score": ("state", "pod", "nodes", "rows", "scores"),
    "reserve": ("state", "pod", "node_name"),
    "unreserve": ("state", "pod", "node_name"),
    "permit": ("state", "pod", "node_name"),
    "post_bind": ("pod", "node_name"),
}
"""The methods of a plugin from outside that are called, and what they are given."""

_WORDS: Final[Mapping[str, str]] = {"sign_pod": "SignPod", "normalize_score": "NormalizeScore"}
# Normalising multiplies by 100 in 64 bits.
_MAX_RAW_SCORE: Final = (2**63 - 1) // MAX_NODE_SCORE
_Method = Callable[..., Any]
_Arguments = tuple[Any, ...]
_Check = Callable[[object, _Arguments, Normalize], str]


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
        for method in CALLS:
            if callable(getattr(plugin, method, None)):
                setattr(self, method, self._guard(method))

    @classmethod
    def around(cls, plugin: object) -> Plugin:
        """The guarded plugin."""
        return cast("Plugin", cls(plugin))

    def _guard(self, method: str) -> _Method:
        call: _Method = getattr(self._plugin, method)
        check = _CHECKS.get(method, _any)
        normalize = self.traits.normalize

        def guarded(*arguments: object) -> object:
            try:
                answer = call(*arguments)
                if problem := check(answer, arguments, normalize):
                    # TRY301 would hide that a wrong answer and a raised error end the same way.
                    raise _Wrong(problem)  # noqa: TRY301
            except Exception as error:  # noqa: BLE001  whatever it raises is its own failure
                return self._failed(method, arguments, error)
            return answer

        return guarded

    def _failed(self, method: str, arguments: _Arguments, error: Exception) -> object:
        told = str(error) if isinstance(error, _Wrong) else f"{type(error).__name__}: {error}"
        point = _WORDS.get(method) or "".join(word.capitalize() for word in method.split("_"))
        message = f'running {point} plugin "{self.name}": {told}'
        if method == "pre_enqueue":
            logger.error("plugin failed, pod is held plugin=%s error=%r", self.name, told)
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (message,))
        if method in {"unreserve", "post_bind"}:
            logger.error("plugin failed plugin=%s method=%s error=%r", self.name, method, told)
            return None
        raise PluginError(message) from error


class _Wrong(Exception):  # noqa: N818  never leaves this module
    """An answer of the wrong kind."""


def _any(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    return ""


def _is(kind: type) -> _Check:
    def check(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
        return "" if isinstance(answer, kind) else f"answered {_shown(answer)}, not a {kind.__name__}"

    return check


def _hashable(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if not isinstance(answer, Hashable):
        return f"answered {_shown(answer)}, which is not hashable"
    hash(answer)
    return ""


def _codes(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if problem := _array_problem(answer, np.int8, len(arguments[3])):
        return problem
    assert isinstance(answer, np.ndarray)
    if len(answer) and (int(answer.min()) < 0 or int(answer.max()) > Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
        return "answered a code that is none of SUCCESS, UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE"
    return ""


def _reasons(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if not isinstance(answer, Sequence) or not all(isinstance(each, Reason) for each in answer):
        return f"answered {_shown(answer)}, not Reasons"
    for reason in answer:
        if not isinstance(reason.text, str):
            return f"answered a reason that is {_shown(reason.text)}, not text"
        if problem := _array_problem(reason.holds, np.bool_, len(arguments[3])):
            return problem
    return ""


def _scores(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if problem := _array_problem(answer, np.int64, len(arguments[3])):
        return problem
    if normalize is Normalize.CUSTOM:
        return ""
    assert isinstance(answer, np.ndarray)
    return _range_problem(answer, MAX_NODE_SCORE if normalize is Normalize.NONE else _MAX_RAW_SCORE)


def _normalised(answer: object, arguments: _Arguments, normalize: Normalize) -> str:
    if problem := _array_problem(answer, np.int64, len(arguments[3])):
        return problem
    assert isinstance(answer, np.ndarray)
    return _range_problem(answer, MAX_NODE_SCORE)


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


_CHECKS: Final[Mapping[str, _Check]] = {
    "sign_pod": _hashable,
    "pre_enqueue": _is(Status),
    "pre_filter": _pre_filter,
    "filter": _codes,
    "reasons": _reasons,
    "post_filter": _is(PostFilterResult),
    "pre_score": _pre_score,
    "score": _scores,
    "normalize_score": _normalised,
    "reserve": _is(Status),
    "permit": _is(Status),
}


def _array_problem(answer: object, dtype: type[np.generic], length: int) -> str:
    if not isinstance(answer, np.ndarray):
        return f"answered {_shown(answer)}, not a numpy array"
    if answer.dtype != dtype or answer.shape != (length,):
        return f"answered {answer.dtype} of shape {answer.shape}, not {np.dtype(dtype)} of shape {(length,)}"
    return ""


def _range_problem(scores: NDArray[np.int64], largest: int) -> str:
    if not len(scores):
        return ""
    for worst in (int(scores.min()), int(scores.max())):
        if not 0 <= worst <= largest:
            return f"answered the score {worst}, it should be in the range of [0, {largest}]"
    return ""


def _shown(answer: object) -> str:
    return "None" if answer is None else f"a {type(answer).__name__}"
