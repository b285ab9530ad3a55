"""The version of Kubernetes stands in go.mod alone: builds, recordings and documents follow it."""

import json
import re
from pathlib import Path

import pytest
from e2e.controlplane.build import build_flags
from e2e.controlplane.change_kubernetes import staging_modules, with_kubernetes
from e2e.controlplane.kubernetes_version import kubernetes_version, minor_version

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
# Figures keep the version that they were measured with.
MEASURED = {"benchmark-figures.md"}
# The last version with a Policy: what is said of it and of those before is history.
LAST_OLD_MINOR = 22
# A section of this heading is about two versions.
CHANGES = re.compile(r"^## What changed from Kubernetes .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
JUDGE = re.compile(r"\bkube-scheduler (?:\()?(?:version )?1\.(\d+)")

GO_MOD = """\
module example.com/m

require (
\texample.com/other v0.36.3 // indirect
\tk8s.io/api v0.36.3 // indirect
\tk8s.io/cri-client v0.36.1 // indirect
\tk8s.io/gone v0.36.3 // indirect
\tk8s.io/kms v0.0.0 // indirect
\tk8s.io/kubernetes v1.36.3 // indirect
)

// Why.
replace (
\tk8s.io/api => k8s.io/api v0.36.3
\tk8s.io/gone => k8s.io/gone v0.36.3
)
"""
UPSTREAM = """\
replace (
\tk8s.io/streaming => ./staging/src/k8s.io/streaming
\tk8s.io/api => ./staging/src/k8s.io/api
)
"""


def test_the_version_is_the_one_of_the_kubernetes_line(tmp_path):
    go_mod = tmp_path / "go.mod"
    go_mod.write_text(GO_MOD)
    assert kubernetes_version(go_mod) == "1.36.3"
    assert minor_version("1.36.3") == "1.36"
    go_mod.write_text("module x\n")
    with pytest.raises(ValueError, match=r"go\.mod: no k8s\.io/kubernetes line"):
        kubernetes_version(go_mod)


def test_what_is_built_carries_the_version():
    version = kubernetes_version()
    flags = " ".join(build_flags())
    assert f".gitVersion=v{version} " in flags
    assert f".gitMajor=1 -X k8s.io/component-base/version.gitMinor={version.split('.')[1]} " in flags


def test_another_version_brings_the_staging_modules_published_with_it():
    staging = staging_modules(UPSTREAM)
    assert staging == ["k8s.io/api", "k8s.io/streaming"]
    changed = GO_MOD.replace("k8s.io/api v0.36.3 //", "k8s.io/api v0.37.1 //").replace("v1.36.3", "v1.37.1")
    changed = changed.replace("k8s.io/api => k8s.io/api v0.36.3", "k8s.io/api => k8s.io/api v0.37.1")
    changed = changed.replace("k8s.io/gone => k8s.io/gone v0.36.3", "k8s.io/streaming => k8s.io/streaming v0.37.1")
    assert with_kubernetes(GO_MOD, "1.36.3", "1.37.1", staging) == changed


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_names_no_other_version_of_kube_scheduler_than_the_judges(document):
    if document.name in MEASURED:
        return
    text = CHANGES.sub("", document.read_text())
    judge = int(kubernetes_version().split(".")[1])
    assert {int(minor) for minor in JUDGE.findall(text)} - set(range(LAST_OLD_MINOR + 1)) <= {judge}


def test_files_are_checked_by_the_openapi_document_of_the_version():
    document = json.loads((ROOT / "operator/bayplan/simulate/openapi.json").read_text())
    assert document["version"] == minor_version(kubernetes_version())


def test_the_documents_say_which_version_is_the_judge():
    judge = f"kube-scheduler {minor_version(kubernetes_version())}"
    for name in ("README.md", "docs/oracle.md", "docs/scope.md"):
        assert judge in (ROOT / name).read_text(), name
