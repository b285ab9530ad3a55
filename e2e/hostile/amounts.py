"""H1 to H28: amounts that no node has, that wrap around, that are next to nothing, or that are no amounts."""

from dataclasses import replace

from e2e.controlplane.client import Object
from e2e.controlplane.objects import container
from e2e.hostile.pods import MAX, requests, several
from e2e.hostile.row import BINDS, FAILS, Case, Request, Row, refused

CPU, MEMORY = "Insufficient cpu", "Insufficient memory"
_GPU = "example.com/gpu"
_NO_QUANTITY: tuple[object, ...] = (
    "",
    "1e",
    "1K",
    "100mi",
    "1Zi",
    "NaN",
    "Inf",
    "0x10",
    "1_000",
    "\u0661",
    True,
    {},
    [],
)


def _unlike(kube_scheduler: str, case: Case) -> Case:
    return replace(case, kube_scheduler=kube_scheduler)


def _refused(*resources: Object, status: int = 422) -> tuple[Request, ...]:
    """Pods whose container has these resources, which the API server refuses."""
    return refused(*({"containers": [{**container({}), "resources": each}]} for each in resources), status=status)


def _both(**amounts: object) -> Object:
    return {"requests": amounts, "limits": amounts}


AMOUNTS: tuple[Row, ...] = (
    Row(
        1,
        "cpu `1e100`, as text and as a number",
        {
            "cpu-1e100": _unlike(BINDS, requests(CPU, cpu="1e100")),
            "cpu-1e100-number": _unlike(BINDS, requests(CPU, cpu=1e100)),
        },
    ),
    Row(
        2,
        "cpu `1E`, 2^63",
        {
            "cpu-1-exa": _unlike(BINDS, requests(CPU, cpu="1E")),
            "cpu-2-to-63": _unlike(BINDS, requests(CPU, cpu=str(2**63))),
        },
    ),
    Row(
        3,
        "cpu 2^63-1, `8Ei`, `16Ei`",
        {
            "cpu-max": _unlike(FAILS, requests(CPU, cpu=str(MAX))),
            "cpu-8-exbi": _unlike(FAILS, requests(CPU, cpu="8Ei")),
            "cpu-16-exbi": _unlike(FAILS, requests(CPU, cpu="16Ei")),
        },
    ),
    Row(4, "cpu `1e1000000`", {"cpu-1e1000000": _unlike(BINDS, requests(CPU, cpu="1e1000000"))}),
    Row(
        5,
        "cpu `1e99999999`, `1e2147483648` (keeps the API server busy for seconds, so it is not sent)",
        note="too much, read by the exponent",
        shown_by=("tests/api/test_quantity.py::test_an_amount_no_node_has_is_too_much_and_never_wraps",),
    ),
    Row(6, "memory `1e100`", {"memory-1e100": _unlike(BINDS, requests(MEMORY, memory="1e100"))}),
    Row(
        7,
        "memory `16Ei`, 2^63-1",
        {
            "memory-16-exbi": requests(MEMORY, memory="16Ei"),
            "memory-max": requests(MEMORY, memory=str(MAX)),
        },
    ),
    Row(
        8,
        "two containers of 2^63-1 bytes each",
        {"memory-sum-wraps": _unlike(BINDS, several(MEMORY, 2, memory=str(MAX)))},
    ),
    Row(
        9,
        "two containers of 9223372036854775 CPUs each",
        {"cpu-sum-wraps": _unlike(FAILS, several(CPU, 2, cpu="9223372036854775"))},
    ),
    Row(
        10,
        "cpu `9223372036854775807m`, `9223372036854775`",
        {
            "cpu-max-milli": requests(CPU, cpu=f"{MAX}m"),
            "cpu-max-when-scaled": requests(CPU, cpu="9223372036854775"),
        },
    ),
    Row(
        11,
        "cpu `0.1n`, `1n`, `1e-10`",
        {
            "cpu-tenth-of-nano": requests(cpu="0.1n"),
            "cpu-nano": requests(cpu="1n"),
            "cpu-1e-10": requests(cpu="1e-10"),
        },
    ),
    Row(
        12,
        "memory `1m`, `0.1n`",
        {"memory-milli": requests(memory="1m"), "memory-tenth-of-nano": requests(memory="0.1n")},
    ),
    Row(
        13,
        "cpu `-1`, `-100m`",
        requests=_refused({"requests": {"cpu": "-1"}}, {"requests": {"cpu": "-100m"}}),
        note="counts as nothing",
        shown_by=("tests/api/test_quantity.py::test_a_negative_amount_counts_as_nothing",),
    ),
    Row(14, "cpu `1Ki`", {"cpu-1-kibi": requests(CPU, cpu="1Ki")}),
    Row(
        15,
        'cpu `.5`, `1.`, `+1`, `" 1"`, `"1 "`',
        {
            "cpu-without-leading-digit": requests(cpu=".5"),
            "cpu-trailing-point": requests(cpu="1."),
            "cpu-plus": requests(cpu="+1"),
            "cpu-leading-space": requests(cpu=" 1"),
            "cpu-trailing-space": requests(cpu="1 "),
        },
    ),
    Row(
        16,
        "cpu as the numbers 1 and 1.5, and null",
        {
            "cpu-integer": requests(cpu=1),
            "cpu-float": requests(cpu=1.5),
            "cpu-null": requests(cpu=None),
        },
    ),
    Row(
        17,
        "cpu that is no amount: `1e`, `1K`, `NaN`, `0x10`, `1_000`, Arabic digits, true, an object, ...",
        requests=_refused(*({"requests": {"cpu": each}} for each in _NO_QUANTITY), status=400),
        note="leaves the pod out and names the field",
        shown_by=("tests/hostile/test_pods.py::test_an_amount_that_is_none_leaves_the_pod_out_and_names_its_field",),
    ),
    Row(
        18,
        "memory `128974848000m`, `1.5Gi`, `100M`",
        {
            "memory-in-milli": requests(memory="128974848000m"),
            "memory-fraction": requests(memory="1.5Gi"),
            "memory-decimal": requests(memory="100M"),
        },
    ),
    Row(19, "extended resource 1.5", requests=_refused(_both(**{_GPU: "1.5"}))),
    Row(
        20,
        "extended resource without a limit, or another one",
        requests=_refused(
            {"requests": {_GPU: "1"}},
            {"requests": {_GPU: "1"}, "limits": {_GPU: "2"}},
        ),
    ),
    Row(21, "extended resource 0 where no node has it", {"extended-zero": requests(**{"example.com/none": "0"})}),
    Row(
        22,
        "extended resource 1 where no node has it; `kubernetes.io/foo`",
        {
            "extended-absent": requests("Insufficient example.com/none", **{"example.com/none": "1"}),
            "extended-native": requests("Insufficient kubernetes.io/foo", **{"kubernetes.io/foo": "1"}),
        },
    ),
    Row(
        23,
        "resources `gpu`, `requests.cpu`, `pods` of a container",
        requests=_refused(*(_both(**{name: "1"}) for name in ("gpu", "requests.cpu", "pods"))),
    ),
    Row(
        24,
        "hugepages of 3Mi in pages of 2Mi; hugepages and nothing else",
        requests=_refused(
            _both(**{"hugepages-2Mi": "3Mi", "cpu": "1", "memory": "1Gi"}),
            _both(**{"hugepages-2Mi": "4Mi"}),
        ),
    ),
    Row(25, "a request above its limit", requests=_refused({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
    Row(
        26,
        "overhead without a RuntimeClass, or negative",
        requests=(
            *refused({"overhead": {"cpu": "1"}}, status=403),
            *refused({"overhead": {"cpu": "-1"}}),
        ),
    ),
    Row(
        27,
        "a pod's own cpu below its containers'; its own ephemeral storage",
        requests=refused(
            {
                "resources": {"requests": {"cpu": "1"}},
                "containers": [{**container({}), "resources": {"requests": {"cpu": "2"}}}],
            },
            {"resources": {"requests": {"ephemeral-storage": "1Gi"}}},
        ),
    ),
    Row(
        28,
        "a sidecar of 4 CPUs beside 500m where nodes have 4",
        {
            "sidecar-too-big": Case(
                CPU,
                {
                    "containers": [container({"cpu": "500m"})],
                    "initContainers": [container({"cpu": "4"}, "side", restartPolicy="Always")],
                },
            )
        },
    ),
)
