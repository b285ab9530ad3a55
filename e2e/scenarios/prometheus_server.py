"""A Prometheus of a test's own: what it scrapes, which rules it evaluates, and what it answers."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.health import get_local, is_healthy
from e2e.controlplane.process import Process, free_ports

_SCRAPE_SECONDS = 1


class Scraped(Protocol):
    """What Prometheus scrapes."""

    def scrape_config(self) -> dict[str, Any]:
        """The entry of `scrape_configs`, but for the job's name."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A port of this machine that is scraped, and the labels that a cluster's service discovery would give it.

    With `token_file` it is asked over HTTPS with that token, whoever signed its certificate: as the shipped
    ServiceMonitor says.
    """

    job: str
    port: int
    cluster: str = "here"
    namespace: str = "kube-system"
    token_file: Path | None = None

    @property
    def instance(self) -> str:
        """What Prometheus calls it."""
        return f"127.0.0.1:{self.port}"

    def scrape_config(self) -> dict[str, Any]:
        """The entry of `scrape_configs` with this target alone, but for the job's name."""
        labels = {"job": self.job, "cluster": self.cluster, "namespace": self.namespace}
        config: dict[str, Any] = {"static_configs": [{"targets": [self.instance], "labels": labels}]}
        if self.token_file is not None:
            config |= {
                "scheme": "https",
                "authorization": {"credentials_file": str(self.token_file)},
                "tls_config": {"insecure_skip_verify": True},
            }
        return config


def bayplan_target(process: BayplanProcess) -> Target:
    """How a scheduler under test is scraped; the one place that knows it."""
    return Target("bayplan", process.http_port)


class PrometheusServer(Process):
    """A running Prometheus that scrapes `targets` once a second and evaluates `rule_files` as often."""

    def __init__(self, directory: Path, targets: Iterable[Scraped], rule_files: Sequence[Path] = ()) -> None:
        (self.port,) = free_ports(1)
        config = directory / "prometheus.yml"
        scraped: list[Scraped] = [
            *targets,
            Target("kubernetes-pods", self.port, cluster="there", namespace="monitoring"),
        ]
        document = {
            "global": {"scrape_interval": f"{_SCRAPE_SECONDS}s", "evaluation_interval": f"{_SCRAPE_SECONDS}s"},
            "scrape_configs": [
                {"job_name": f"{index}", **target.scrape_config()} for index, target in enumerate(scraped)
            ],
            "rule_files": [str(path) for path in rule_files],
        }
        config.write_text(json.dumps(document))  # JSON is YAML
        super().__init__(
            "prometheus",
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=warn",
            ],
            log_path=directory / "prometheus.log",
            directory=directory,
        )

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        return is_healthy(self.port, path="/-/ready")

    def api(self, path: str, **parameters: str) -> dict[str, Any]:
        """Returns the data of an answer of its HTTP API that is an object and comes without a warning."""
        data: dict[str, Any] = self._answer(path, parameters)["data"]
        return data

    def values(self, query: str, **parameters: str) -> list[float]:
        """The numbers an instant query gives; a quantile over no observations is not a number and left out."""
        series = self.api("query", query=query, **parameters)["result"]
        return [number for one in series if not math.isnan(number := float(one["value"][1]))]

    def series(self, selector: str) -> list[dict[str, str]]:
        """The labels of every series that a selector finds."""
        found: list[dict[str, str]] = self._answer("series", {"match[]": selector})["data"]
        return found

    def label_values(self, selector: str, label: str) -> list[str]:
        """The values of a label on the series that a selector finds."""
        found: list[str] = self._answer(f"label/{label}/values", {"match[]": selector})["data"]
        return found

    def _answer(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        status, text = get_local(self.port, f"/api/v1/{path}?{urlencode(parameters)}")
        answer: dict[str, Any] = json.loads(text)
        assert (status, answer["status"]) == (200, "success"), text
        assert not answer.get("warnings"), text
        return answer
