"""Affinity and anti-affinity between pods, of those that come and of those that are there."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts
from tests.oracle.families.selectors import keys_of, label_selector, namespace_selector

_KEYS = (parts.ZONE, parts.ZONE, parts.HOSTNAME, parts.RACK, parts.REGION)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def generate(dice: Dice) -> Scene:
    """Placed pods with rules of their own, and incoming pods with and without."""
    cluster = parts.nodes(dice, 4, 16)
    placed = parts.placed_pods(dice, cluster, dice.choice((0.3, 1.0, 2.0)))
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 6))]
    calm = dice.choice((0.1, 0.3, 0.6))
    for each in placed:
        parts.requests(dice, each, large=0.0)
        if dice.maybe(calm):
            rules(dice, each)
    for each in incoming:
        parts.requests(dice, each, large=0.0)
        if dice.maybe(0.75):
            rules(dice, each)
    return Scene([], cluster, placed, incoming)


def rules(dice: Dice, each: Object) -> None:
    """Required and preferred terms, for and against."""
    chances = {
        ("podAffinity", _REQUIRED): 0.3,
        ("podAntiAffinity", _REQUIRED): 0.35,
        ("podAffinity", _PREFERRED): 0.4,
        ("podAntiAffinity", _PREFERRED): 0.4,
    }
    for (kind, strength), chance in chances.items():
        if not dice.maybe(chance):
            continue
        terms = [_term(dice, each) for _ in range(dice.choice((1, 1, 2)))]
        if strength == _PREFERRED:
            weighted = [{"weight": dice.choice((1, 5, 33, 100)), "podAffinityTerm": term} for term in terms]
            parts.affinity(each, kind)[strength] = weighted
        else:
            parts.affinity(each, kind)[strength] = terms


def _term(dice: Dice, each: Object) -> Object:
    term: Object = {"topologyKey": dice.choice(_KEYS)}
    if dice.maybe(0.95):
        own = {"matchLabels": {"app": each["metadata"]["labels"]["app"]}}
        term["labelSelector"] = own if dice.maybe(0.4) else label_selector(dice)
        if dice.maybe(0.15) and "version" not in keys_of(term["labelSelector"]):
            term[dice.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    if dice.maybe(0.3):
        term["namespaces"] = dice.some((*parts.NAMESPACES, "nowhere"), 1, 2)
    if dice.maybe(0.3):
        term["namespaceSelector"] = namespace_selector(dice)
    return term
