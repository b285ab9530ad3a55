"""What rounds and benchmarks put on a cluster, and what they print of it."""

from e2e.bench.families.turn import Result
from e2e.bench.gangs import CRD, NATIVE, Row, table, workload
from e2e.gangs.objects import GROUPS, LABEL, mpi_job, ray_cluster
from e2e.gangs.rounds import ALLOWED_SECONDS, Played, layout


def test_a_round_has_two_to_six_gangs_with_room_for_some() -> None:
    for number in range(50):
        made = layout(1, number, "n")
        pods = [each for wave in made.waves for kind, each in wave if kind == "pods"]
        cpus = sum(int(each["status"]["allocatable"]["cpu"]) for each in made.nodes)
        assert 2 <= len(made.gangs) <= 6
        assert all(2 <= gang.least <= len(gang.members) <= 16 for gang in made.gangs.values())
        assert {key for gang in made.gangs.values() for key in gang.members} == {
            f"n/{each['metadata']['name']}" for each in pods
        }
        assert 2 <= cpus < len(pods)


def test_rounds_in_other_namespaces_share_no_node() -> None:
    one, other = layout(1, 2, "n"), layout(1, 2, "m")
    assert {each["metadata"]["name"] for each in one.nodes}.isdisjoint(each["metadata"]["name"] for each in other.nodes)
    labels = one.nodes[0]["metadata"]["labels"]
    selectors = [each["spec"]["nodeSelector"] for wave in one.waves for kind, each in wave if kind == "pods"]
    assert all(selector.items() <= labels.items() for selector in selectors)
    assert not selectors[0].items() <= other.nodes[0]["metadata"]["labels"].items()


def test_a_round_is_a_function_of_its_seed_and_number() -> None:
    assert layout(1, 2, "n") == layout(1, 2, "n")
    assert layout(1, 2, "n") != layout(1, 3, "n")
    assert layout(1, 2, "n") != layout(2, 2, "n")


def test_a_round_is_good_unless_a_gang_ran_in_part_for_long_or_at_its_end() -> None:
    assert Played(ALLOWED_SECONDS, whole=2, in_part=0).is_good
    assert not Played(ALLOWED_SECONDS + 0.1, whole=2, in_part=0).is_good
    assert not Played(0.0, whole=2, in_part=1).is_good


def test_pods_of_controllers_carry_the_label_of_a_group_that_needs_them_all() -> None:
    for group, pods in (mpi_job("pi", "n", 2), ray_cluster("ray", "n", 2)):
        assert group["spec"]["minMember"] == len(pods) == 3
        assert {pod["metadata"]["labels"][LABEL] for pod in pods} == {group["metadata"]["name"]}


def test_a_benchmark_has_the_same_pods_in_gangs_and_in_none() -> None:
    plain, native, crd = (workload(8, size, kind, "n") for size, kind in ((0, NATIVE), (4, NATIVE), (4, CRD)))
    assert [kind for kind, _ in plain.objects] == []
    assert [kind for kind, _ in native.objects] == ["podgroups"] * 2
    assert [kind for kind, _ in crd.objects] == [GROUPS] * 2
    assert [pod["metadata"]["name"] for pod in native.measured] == [pod["metadata"]["name"] for pod in plain.measured]
    assert [pod["spec"]["schedulingGroup"]["podGroupName"] for pod in native.measured[3:5]] == [
        "gang-0000",
        "gang-0001",
    ]
    assert [pod["metadata"]["labels"][LABEL] for pod in crd.measured[3:5]] == ["gang-0000", "gang-0001"]


def test_the_first_bind_is_what_all_took_less_the_binds() -> None:
    result = Result("bayplan", 100, 100, 4.0, 1.0, 50_000_000, 20.0, 5.5)
    row = table([Row(8, CRD, 0, result)]).splitlines()[-1]
    assert [cell.strip() for cell in row.split("|")[1:-1]][:6] == ["8", "crd", "bayplan", "25", "1.50", "5.50"]
