"""What is installed with `kubectl apply -k` is made by the kubectl that people have, and not by the newest alone."""

from pathlib import Path

import pytest
import yaml

MANIFESTS = Path(__file__).parents[1] / "manifests"
PATCH_FILES = [
    file.parent / patch["path"]
    for file in sorted(MANIFESTS.rglob("kustomization.yaml"))
    for patch in yaml.safe_load(file.read_text()).get("patches", ())
    if "path" in patch
]


@pytest.mark.parametrize("file", PATCH_FILES, ids=lambda file: str(file.relative_to(MANIFESTS)))
def test_a_file_holds_one_patch_as_kubectl_up_to_1_33_fails_on_several_of_which_one_deletes(file: Path) -> None:
    assert len(list(yaml.safe_load_all(file.read_text()))) == 1
