"""The image's files, assembled as the Dockerfile says, run as the Deployment runs them."""

import json
from pathlib import Path

import pytest

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.image.assembly import STAND_IN, Assembly, can_assemble
from e2e.image.dockerfile import context_files, read_stages

DOCKERFILE = REPOSITORY / "Dockerfile"
needs_mounts = pytest.mark.skipif(not can_assemble(), reason="only root may mount overlays")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    assembly = Assembly(REPOSITORY, tmp_path_factory.mktemp("image"))
    assembly.build()
    return assembly


def test_every_stage_starts_from_the_image_that_has_a_digest_or_from_nothing() -> None:
    assert [stage.base for stage in read_stages(DOCKERFILE)] == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}", "scratch"]
    (argument,) = [line for line in DOCKERFILE.read_text().splitlines() if line.startswith("ARG")][:1]
    assert argument == "ARG PYTHON_IMAGE"


def test_the_builder_gets_no_more_than_what_is_copied() -> None:
    copied = [
        source
        for stage in read_stages(DOCKERFILE)
        for each in stage.instructions
        if each.name == "COPY" and "--from=" not in each.text
        for source in each.text.split()[:-1]
    ]
    assert sorted(copied) == sorted(context_files(REPOSITORY / ".dockerignore"))


def test_the_image_runs_as_the_user_the_deployment_names() -> None:
    assert read_stages(DOCKERFILE)[-1].last("USER") == "65532:65532"


@needs_mounts
def test_a_base_without_a_digest_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"PYTHON_IMAGE has no digest: python:3\.11-slim"):
        Assembly(REPOSITORY, tmp_path).build(STAND_IN.partition("@")[0])


@needs_mounts
def test_it_decides_without_a_network_on_a_read_only_root_as_an_unprivileged_user(image: Assembly) -> None:
    arguments = ["--config", "/files/worked-example.yaml", "--cluster", "/files/cluster/worked-example.yaml"]
    done = image.run(["simulate", *arguments], files=REPOSITORY / "examples")
    assert done.returncode == 0, done.stderr
    assert "default/pending  node-2" in done.stdout


@needs_mounts
def test_the_process_has_no_rights_and_can_write_to_its_tmp_only(image: Assembly) -> None:
    seen = """
import json, os, pathlib
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
def writable(path):
    try:
        pathlib.Path(path, "probe").touch()
    except OSError:
        return False
    return True
print(json.dumps({
    "uid": os.getuid(), "groups": os.getgroups(), "caps": int(status["CapEff"], 16), "bound": int(status["CapBnd"], 16),
    "interfaces": os.listdir("/sys/class/net") if os.path.isdir("/sys/class/net") else [],
    "writable": [path for path in ("/", "/opt/bayplan", "/usr/local", "/tmp") if writable(path)],
}))
"""
    done = image.execute(["python", "-c", seen])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["uid"], found["groups"], found["caps"], found["bound"]) == (65532, [], 0, 0)
    assert found["writable"] == ["/tmp"]


@needs_mounts
@pytest.mark.parametrize("module", ["pip", "setuptools", "ensurepip", "hatchling"])
def test_nothing_in_it_can_install_or_build(image: Assembly, module: str) -> None:
    for python in ("/opt/bayplan/bin/python", "/usr/local/bin/python3"):
        done = image.execute([python, "-c", f"import {module}"])
        assert "ModuleNotFoundError" in done.stderr, python


@needs_mounts
@pytest.mark.parametrize("program", ["pip", "pip3", "cc", "gcc", "ld", "make"])
def test_it_has_no_compiler_and_no_installer(image: Assembly, program: str) -> None:
    assert image.execute(["sh", "-c", f"command -v {program}"]).stdout == ""


@needs_mounts
def test_what_is_installed_is_what_the_lock_file_names(image: Assembly) -> None:
    listed = "from importlib.metadata import distributions as d; print(*(f'{x.name}=={x.version}' for x in d()))"
    done = image.execute(["/opt/bayplan/bin/python", "-c", listed])
    locked = (REPOSITORY / "image" / "requirements.txt").read_text().splitlines()
    pinned = {line.split()[0] for line in locked if "==" in line}
    names = {each.lower().replace("_", "-") for each in done.stdout.split()}
    assert {each for each in names if not each.startswith("bayplan==")} == pinned
