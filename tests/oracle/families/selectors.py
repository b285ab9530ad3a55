"""Label selectors over the labels that pods of these scenes have."""

from tests.oracle.case import Object
from tests.oracle.dice import Dice

_VALUES = {"app": ("a", "b", "c"), "version": ("1", "2"), "absent": ("x",)}


def label_selector(dice: Dice) -> Object:
    """Mostly one that some pods match; now and then one that matches all or none."""
    if dice.maybe(0.06):
        return {}
    selector: Object = {}
    if dice.maybe(0.6):
        selector["matchLabels"] = {"app": dice.choice(_VALUES["app"])}
    if dice.maybe(0.15):
        selector.setdefault("matchLabels", {})["version"] = dice.choice(_VALUES["version"])
    if not selector or dice.maybe(0.25):
        selector["matchExpressions"] = [_expression(dice) for _ in range(dice.choice((1, 1, 2)))]
    return selector


def keys_of(selector: Object) -> set[str]:
    """The label keys a selector names; matchLabelKeys must not name them again."""
    return {*selector.get("matchLabels", {}), *(each["key"] for each in selector.get("matchExpressions", []))}


def namespace_selector(dice: Dice) -> Object:
    """Over the labels of the namespaces; `{}` means all of them."""
    if dice.maybe(0.25):
        return {}
    if dice.maybe(0.4):
        return {"matchLabels": dice.choice(({"team": "sea"}, {"env": "dev"}, {"env": "prod"}, {"team": "none"}))}
    operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    expression: Object = {"key": dice.choice(("team", "env")), "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = dice.some(("sea", "wood", "prod", "dev"), 1, 2)
    return {"matchExpressions": [expression]}


def _expression(dice: Dice) -> Object:
    key = dice.choice(("app", "app", "version", "absent"))
    operator = dice.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    expression: Object = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = dice.some(_VALUES[key], 1, 2)
    return expression
