"""The macros: what becomes of each call whose operands are not simply worked out before it."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bayplan.cel.closures import Code, Constant, Frame, Loop, call
from bayplan.cel.errors import EvaluationError, StoppedError, no_overload
from bayplan.cel.functions import DEFINITIONS
from bayplan.cel.kubernetes_types import Semver
from bayplan.cel.syntax import Call, Member, Name
from bayplan.cel.values import MAPS, NONE, NOTHING, NUMBERS, Option, contains, key_of, kind_of, shown, sized

if TYPE_CHECKING:
    from bayplan.cel.compiler import Compiler

Macro: TypeAlias = Callable[["Compiler", Call], Code]

MACROS: Final[dict[tuple[str, int], Macro]] = {}
"""By name and number of arguments, as functions are; ANY_NUMBER for operators."""
ANY_NUMBER: Final = -1

_DECISIVE: Final = {"_||_": True, ".exists": True, "_&&_": False, ".all": False}
_HASHED: Final = NUMBERS | {bool, str, type(None)}


def _macro(*names: str, arguments: tuple[int, ...] = (ANY_NUMBER,)) -> Callable[[Macro], Macro]:
    def declared(macro: Macro) -> Macro:
        MACROS.update({(name, number): macro for name in names for number in arguments})
        return macro

    return declared


def _logic(terms: Callable[[Frame], Iterable[Code]], *, decisive: bool) -> Code:
    """Return || or exists(), which one true term decides, or && or all(), which one false one does."""

    def run(frame: Frame) -> bool:
        problem: EvaluationError | None = None
        for term in terms(frame):
            try:
                value = term(frame)
                if type(value) is not bool:
                    raise no_overload()
                if value is decisive:
                    return decisive
            except EvaluationError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return not decisive

    return run


@_macro("_&&_", "_||_")
def _chain(compiler: "Compiler", node: Call) -> Code:
    codes = compiler.codes(node.args)
    return _logic(lambda _: codes, decisive=_DECISIVE[node.name])


@_macro(".all", ".exists", arguments=(3, 4))
def _quantifier(compiler: "Compiler", node: Call) -> Code:
    elements, (body,), _ = compiler.loop(node, len(node.args) - 2)
    return _logic(lambda frame: (body for _ in elements(frame)), decisive=_DECISIVE[node.name])


@_macro("_?_:_")
def _choice(compiler: "Compiler", node: Call) -> Code:
    condition, chosen, other = compiler.codes(node.args)

    def run(frame: Frame) -> Any:
        value = condition(frame)
        if type(value) is not bool:
            raise no_overload()
        return chosen(frame) if value else other(frame)

    return run


@_macro("_in_")
def _membership(compiler: "Compiler", node: Call) -> Code:
    value, container = compiler.codes(node.args)
    constant = container.value if isinstance(container, Constant) and container.literal else None
    if constant == []:
        return Constant(False, literal=False)
    if type(constant) is not list or any(type(each) not in _HASHED for each in constant):
        return call(DEFINITIONS["_in_", 2], (value, container), repeated=compiler.in_loop)

    def one_of(frame: Frame) -> bool:
        found = value(frame)
        if type(found) is Semver:
            # Upstream looks for it in a hash table, where a version cannot be.
            raise StoppedError("internal error: runtime error: hash of unhashable type cel.Semver")
        return contains(constant, found)

    return one_of


@_macro("[]")
def _list(compiler: "Compiler", node: Call) -> Code:
    items = compiler.codes(node.args)
    constants = [each for each in items if isinstance(each, Constant)]
    if len(constants) == len(items):
        return Constant([each.value for each in constants], literal=all(each.literal for each in constants))
    return lambda frame: [value for item in items if (value := _given(item(frame), "list element")) is not NOTHING]


@_macro("{}")
def _map(compiler: "Compiler", node: Call) -> Code:
    codes = compiler.codes(node.args)
    entries = list(zip(codes[::2], codes[1::2], strict=True))

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_code, value_code in entries:
            key = key_of(key_code(frame))
            value = _given(value_code(frame), f"entry '{key}'")
            if value is not NOTHING:
                found[key] = value
        return found

    return run


@_macro("?")
def _optional(compiler: "Compiler", node: Call) -> Code:
    (code,) = compiler.codes(node.args)
    return lambda frame: (code(frame),)


def _given(value: Any, what: str) -> Any:
    """What a literal has of a part, or NOTHING; a part with a question mark is in a tuple, which no value is."""
    if type(value) is not tuple:
        return value
    (option,) = value
    if type(option) is not Option:
        raise EvaluationError(f"cannot initialize optional {what} from non-optional value {option}")
    return option.value


@_macro("has", arguments=(1,))
def _has(compiler: "Compiler", node: Call) -> Code:
    (argument,) = node.args
    if not isinstance(argument, Member) or not argument.dotted or argument.optional:
        raise compiler.problem(argument.at, "invalid argument to has() macro")
    return compiler.member(argument, test=True)


def _accumulation(
    elements: Loop, condition: Code | None, body: Code, made: type = list, add: Callable[..., None] = list.append
) -> Code:
    """Return the loop that adds what `body` gives to a list or map where `condition` holds.

    An error ends nothing: upstream's is the last of the condition, or the first of the body.
    """

    def run(frame: Frame) -> Any:
        result = made()
        problem: EvaluationError | None = None
        for _ in elements(frame):
            try:
                chosen = condition is None or condition(frame)
                if type(chosen) is not bool:
                    raise no_overload()
                if chosen and problem is None:
                    add(result, body(frame))
            except EvaluationError as error:
                problem = error
        if problem is not None:
            raise problem
        sized(len(result))
        return result

    return run


@_macro(".filter", ".exists_one", arguments=(3,))
@_macro(".exists_one", ".existsOne", arguments=(4,))
def _chosen(compiler: "Compiler", node: Call) -> Code:
    """Both give the first variable for each element that is chosen; exists_one() asks whether that is one."""
    transform = ".map" if len(node.args) == 3 else ".transformList"
    found = _transform(compiler, Call(transform, (*node.args, node.args[1]), node.at))
    return found if node.name == ".filter" else lambda frame: len(found(frame)) == 1


@_macro(".map", arguments=(3, 4))
@_macro(".transformList", ".transformMap", ".transformMapEntry", arguments=(4, 5))
def _transform(compiler: "Compiler", node: Call) -> Code:
    elements, (*condition, body), places = compiler.loop(node, 1 if node.name == ".map" else 2)
    chosen = condition[0] if condition else None
    if node.name in (".map", ".transformList"):
        return _accumulation(elements, chosen, body)
    entry = body if node.name == ".transformMapEntry" else lambda frame: {key_of(frame[places[0]]): body(frame)}
    return _accumulation(elements, chosen, entry, dict, _insert)


def _insert(result: dict[Any, Any], entries: Any) -> None:
    if type(entries) not in MAPS:
        raise no_overload(f"cel.@mapInsert(map, {kind_of(entries)})")
    for key, value in entries.items():
        if key in result:
            raise EvaluationError(f"insert failed: key {shown(key[0] if type(key) is tuple else key)} already exists")
        result[key] = value


@_macro(".sortBy", arguments=(3,))
def _sort_by(compiler: "Compiler", node: Call) -> Code:
    target, variable, body = node.args
    items = Name("@items", node.at)
    keys = Call(".map", (items, variable, body), node.at)
    ordered = Call("@sortByAssociatedKeys", (items, keys), node.at)
    return _bind(compiler, Call("cel.bind", (items, target, ordered), node.at))


@_macro("cel.bind", arguments=(3,))
def _bind(compiler: "Compiler", node: Call) -> Code:
    name, value, body = node.args
    code = compiler.code(value)
    with compiler.variables(compiler.variable_name(name)) as (place,):
        inner = compiler.code(body)

    def run(frame: Frame) -> Any:
        try:
            frame[place] = code(frame)
        except EvaluationError as error:
            # It is one only where the name is read.
            frame[place] = error
        return inner(frame)

    return run


@_macro(".optMap", ".optFlatMap", arguments=(3,))
def _opt_map(compiler: "Compiler", node: Call) -> Code:
    option = compiler.code(node.args[0])
    with compiler.variables(compiler.variable_name(node.args[1])) as (place,):
        body = compiler.code(node.args[2])
    flat = node.name == ".optFlatMap"

    def run(frame: Frame) -> Any:
        value = option(frame)
        if type(value) is not Option:
            raise no_overload(f"hasValue({kind_of(value)})")
        if value.value is NOTHING:
            return NONE
        frame[place] = value.value
        result = body(frame)
        return result if flat else Option(result)

    return run


@_macro(".or", ".orValue", arguments=(2,))
def _alternative(compiler: "Compiler", node: Call) -> Code:
    option, other = compiler.codes(node.args)
    unwrapped = node.name == ".orValue"

    def run(frame: Frame) -> Any:
        value = option(frame)
        if type(value) is not Option:
            raise no_overload()
        if value.value is NOTHING:
            return other(frame)
        return value.value if unwrapped else value

    return run
