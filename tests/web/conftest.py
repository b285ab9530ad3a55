"""A real Chromium for the tests of the page, where there is one."""

import os
from pathlib import Path

import pytest
from tests.web.chromium import ServedSource, Tab, end, executable, start_command
from tests.web.clusters import mixed_cluster, write
from tests.web.pictures import Pictures


@pytest.fixture(scope="module")
def chromium():
    """The browser; tests that need it are left out on a machine without one.

    Playwright runs a loop in this thread while it is there, so other modules' tests could not run theirs.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found, arguments = executable()
    if found is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium, or say where it is in BAYPLAN_CHROMIUM")
    with playwright.sync_playwright() as running:
        # One process draws all pages, and none is started that may be of use later.
        arguments += ["--process-per-site", "--renderer-process-limit=1"]
        browser = running.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium, page_of, served):
    """Opens a page in a tab of its own, which is closed before whoever serves the page ends: it would ask in vain."""
    made = []

    def opened(address, link="", **settings):
        tab = Tab(chromium, **settings)
        made.append(tab)
        tab.open(address, link)
        return tab

    yield opened
    for each in made:
        # A page that broke a rule fails every test that used it.
        assert each.faults == []
        assert each.violations() == []
        each.context.close()


@pytest.fixture(scope="session")
def mixed(tmp_path_factory):
    """The address of a page of 60 nodes of three kinds."""
    address, process = start_command(write(tmp_path_factory.mktemp("web") / "cluster.json", mixed_cluster(60)))
    yield address
    assert end(process) == 0


@pytest.fixture
def page_of(tmp_path):
    """Serves objects as files; returns the address."""
    started = []

    def start(objects):
        address, process = start_command(write(tmp_path / "cluster.json", objects))
        started.append(process)
        return address

    yield start
    for process in started:
        assert end(process) == 0


@pytest.fixture(scope="session")
def two_configurations(tmp_path_factory):
    """The address of a page of 30 nodes by a configuration that packs and one that spreads."""
    configs = ("--config", "examples/most-allocated.yaml", "--config", "tests/web/spread.yaml")
    address, process = start_command(
        write(tmp_path_factory.mktemp("web") / "cluster.json", mixed_cluster(30)), *configs
    )
    yield address
    assert end(process) == 0


@pytest.fixture
def served():
    made = []

    def serve(source, page):
        made.append(ServedSource(source, page))
        return made[-1]

    yield serve
    for each in made:
        each.close()


@pytest.fixture
def pictures(tmp_path):
    """Takes pictures of a page, for the documents where BAYPLAN_PICTURES says so."""
    return Pictures(Path(os.environ.get("BAYPLAN_PICTURES", tmp_path)))
