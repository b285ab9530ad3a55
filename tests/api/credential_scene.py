"""Kubeconfig files and exec plugins."""

import json
import stat
import sys

import yaml

EXEC_VERSION = "client.authentication.k8s.io/v1"


def kubeconfig(tmp_path, *, name="config", user=None, cluster=None, **top):
    document = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **top,
    }
    path = tmp_path / name
    path.write_text(yaml.safe_dump(document))
    return path


def plugin(tmp_path, status, *, code=0, name="plugin"):
    """Write an exec plugin that counts its runs in the file `runs`."""
    path = tmp_path / name
    answer = json.dumps({"apiVersion": EXEC_VERSION, "kind": "ExecCredential", "status": status})
    path.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'runs')!r}, 'a').write('x')\n"
        f"sys.stderr.write('stderr-secret')\nprint({answer!r})\nsys.exit({code})\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": EXEC_VERSION, "command": str(path)}}


def runs(tmp_path):
    return len((tmp_path / "runs").read_text())


def pair(tmp_path, authority):
    certificate, key = authority.issue("bayplan", [])
    (tmp_path / "client.crt").write_bytes(certificate)
    (tmp_path / "client.key").write_bytes(key)
    return {"client-certificate": "client.crt", "client-key": "client.key"}
