"""Affinity terms of pods, compiled, and how to find the selectors that may match some labels."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.objects import Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from bayplan.api.selectors import Labels, compile_label_selector
from bayplan.cache.inverted_index import InvertedIndex

T = TypeVar("T", bound=Hashable)

Anchor = tuple[str, str] | None
"""A label as key and value, or None for no label."""

_MAX_WEIGHT = 2**31 - 1
_BYTES_PER_CHARACTER = 16
"""What a compiled term takes in memory for a character of its text, which its long field names are part of."""


def anchors(selector: LabelSelector | None) -> tuple[Anchor, ...]:
    """Return what to look a selector up by: of these, one is among all labels that it matches.

    None alone where it needs no label that can be told, and nothing where it matches no labels.
    """
    if selector is None:
        return ()
    if selector.match_labels:
        return (next(iter(selector.match_labels.items())),)
    for each in selector.match_expressions or ():
        if each.operator == "In":
            return tuple((each.key, value) for value in dict.fromkeys(each.values or ()))
    return (None,)


def that_may_match(index: InvertedIndex[Anchor, T], labels: Labels | None) -> Iterator[T]:
    """Give what stands in `index` under anchors of these labels, each once: no other selector can match them."""
    for anchor in (None, *(labels or {}).items()):
        yield from index.get(anchor)


class AffinityTerm:
    """Which pods a term is about, and the topology key that says how near they are.

    Equal terms are one object for as long as anybody holds it, so that readers may count by term.

    Attributes:
        namespaces: Names of namespaces whose pods it may match.
        label_keys: Label keys of pods that its selector asks about.
        error: Why the term is invalid, or "".
    """

    __slots__ = (
        "__weakref__",
        "_selector",
        "anchors",
        "error",
        "label_keys",
        "namespace_selector",
        "namespaces",
        "selects_namespaces",
        "size",
        "topology_key",
    )

    def __init__(self, namespaces: frozenset[str], term: PodAffinityTerm, text: str) -> None:
        self.size = _BYTES_PER_CHARACTER * len(text)
        """About how many bytes it takes in memory; whoever keeps terms counts them so."""
        self.namespaces = namespaces
        self.topology_key = term.topology_key
        self.namespace_selector = compile_label_selector(term.namespace_selector)
        self._selector = compile_label_selector(term.label_selector)
        self.error = self._selector.error or self.namespace_selector.error
        self.label_keys = _label_keys(term.label_selector)
        self.anchors = anchors(term.label_selector)
        """What it is looked up by."""
        self.selects_namespaces = not (self.namespace_selector.is_nothing or self.namespace_selector.is_everything)
        """Whether a namespace's labels decide."""

    def matches(self, namespace: str, labels: Labels | None, namespace_labels: Labels | None) -> bool:
        """Whether it is about a pod with these labels in a namespace with those."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self._selector.matches(labels)

    def selects(self, labels: Labels | None) -> bool:
        """Whether its selector, namespaces aside, matches the labels of a pod."""
        return self._selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodAffinityTerms:
    """All terms of a pod by kind; a kind with an invalid term has none, and `error` says why.

    Preferred terms come with their weights, negative for anti-affinity. Source: kube-scheduler framework/types.go.
    """

    required_affinity: Sequence[AffinityTerm] = ()
    required_anti_affinity: Sequence[AffinityTerm] = ()
    preferred: Sequence[tuple[AffinityTerm, int]] = ()
    error: str = ""
    text: str = ""
    """Equal for pods whose terms, as written, are equal."""

    def every(self) -> Iterable[AffinityTerm]:
        """The terms of all kinds."""
        yield from self.required_affinity
        yield from self.required_anti_affinity
        for term, _ in self.preferred:
            yield term


NO_TERMS = PodAffinityTerms()

_terms: WeakValueDictionary[tuple[frozenset[str], str], AffinityTerm] = WeakValueDictionary()


def affinity_terms(pod: Pod) -> PodAffinityTerms:
    """The terms of a pod; the very same object, NO_TERMS, for pods without any."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    near, far = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    errors: list[str] = []
    namespace = pod.metadata.namespace
    required = _required(namespace, near, "requiredAffinityTerms", errors)
    required_anti = _required(namespace, far, "requiredAntiAffinityTerms", errors)
    preferred = _preferred(namespace, near, "preferredAffinityTerms", 1, errors)
    preferred += _preferred(namespace, far, "preferredAntiAffinityTerms", -1, errors)
    if not (required or required_anti or preferred or errors):
        return NO_TERMS
    error = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""
    return PodAffinityTerms(required, required_anti, preferred, error, f"{near!r}{far!r}")


def _required(namespace: str, affinity: PodAffinity, kind: str, errors: list[str]) -> tuple[AffinityTerm, ...]:
    return _compile(namespace, affinity.required_during_scheduling_ignored_during_execution or (), kind, errors)


def _preferred(
    namespace: str, affinity: PodAffinity, kind: str, sign: int, errors: list[str]
) -> tuple[tuple[AffinityTerm, int], ...]:
    weighted: Sequence[WeightedPodAffinityTerm] = affinity.preferred_during_scheduling_ignored_during_execution or ()
    terms = _compile(namespace, [each.pod_affinity_term for each in weighted], kind, errors)
    # A kind with an error has no terms, which the shorter of the two ends.
    return tuple(
        (term, sign * min(max(each.weight, -_MAX_WEIGHT), _MAX_WEIGHT))
        for term, each in zip(terms, weighted, strict=False)
    )


def _compile(
    namespace: str, terms: Sequence[PodAffinityTerm], kind: str, errors: list[str]
) -> tuple[AffinityTerm, ...]:
    compiled = tuple(_interned(namespace, term) for term in terms)
    error = next((term.error for term in compiled if term.error), "")
    if error:
        errors.append(f"{kind}: {error}")
        return ()
    return compiled


def _interned(namespace: str, term: PodAffinityTerm) -> AffinityTerm:
    """The term of a pod in `namespace`, which is meant where the term names no namespaces."""
    own = not term.namespaces and term.namespace_selector is None
    namespaces = frozenset((namespace,) if own else term.namespaces or ())
    text = f"{term.label_selector!r}{term.namespace_selector!r}{term.topology_key!r}"
    known = _terms.get((namespaces, text))
    if known is None:
        known = _terms[namespaces, text] = AffinityTerm(namespaces, term, text)
    return known


def _label_keys(selector: LabelSelector | None) -> frozenset[str]:
    if selector is None:
        return frozenset()
    return frozenset(selector.match_labels or ()) | {each.key for each in selector.match_expressions or ()}
