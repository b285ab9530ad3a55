import json
import logging
import threading
import warnings

import pytest

from bayplan.logs.formats import V2, V5, LoggingFormat
from bayplan.logs.line_writer import set_up_logging, write_aside


@pytest.fixture(autouse=True)
def _logging_as_it_was(logging_as_it_was):
    """Leave logging as it was."""


def logged(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize(("verbosity", "written"), [(0, ["info"]), (2, ["info", "two"]), (9, ["info", "two", "five"])])
def test_v_says_which_of_bayplans_lines_are_written(verbosity, written, capsys):
    set_up_logging(LoggingFormat.JSON, verbosity)
    ours = logging.getLogger("bayplan.scheduler")
    ours.info("info")
    ours.log(V2, "two")
    ours.log(V5, "five")
    ours.debug("ten")
    assert [line["msg"] for line in logged(capsys)] == written


def test_any_number_that_kube_scheduler_takes_is_taken(capsys):
    set_up_logging(LoggingFormat.JSON, 2**31 - 1)
    logging.getLogger("bayplan").debug("ten")
    assert [line["msg"] for line in logged(capsys)] == ["ten"]


@pytest.mark.parametrize("verbosity", [0, 10, 100])
@pytest.mark.parametrize("library", ["aiohttp.client", "asyncio", "kubernetes.client.rest", "pyreqwest", "urllib3"])
def test_libraries_warn_in_our_format_and_say_nothing_else(library, verbosity, capsys):
    set_up_logging(LoggingFormat.JSON, verbosity)
    logging.getLogger(library).debug("response body: token")
    logging.getLogger(library).info("request")
    logging.getLogger(library).warning("trouble")
    assert [(line["logger"], line["msg"]) for line in logged(capsys)] == [(library, "trouble")]


def test_kopf_tells_errors_only(capsys):
    set_up_logging(LoggingFormat.JSON, 10)
    logging.getLogger("kopf.objects").warning("Handler 'bayplan' succeeded.")
    logging.getLogger("kopf.objects").error("Handler 'bayplan' failed.")
    assert [line["msg"] for line in logged(capsys)] == ["Handler 'bayplan' failed."]


def test_plugins_from_outside_are_heard_from_info_on(capsys):
    set_up_logging(LoggingFormat.TEXT, 10)
    logging.getLogger("acme_plugin").debug("quiet")
    logging.getLogger("acme_plugin").info("heard")
    assert [line.split(" ", 2)[2] for line in capsys.readouterr().err.splitlines()] == ["I acme_plugin heard"]


def test_a_warning_of_python_is_a_line(capsys):
    set_up_logging(LoggingFormat.JSON, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    (line,) = logged(capsys)
    assert (line["logger"], line["level"]) == ("py.warnings", "warning")
    assert "DeprecationWarning: old" in line["msg"]


def test_an_exception_that_ends_a_thread_is_a_line(capsys):
    set_up_logging(LoggingFormat.JSON, 0)

    def fail():
        raise ValueError("broken")

    thread = threading.Thread(target=fail, name="reader")
    thread.start()
    thread.join()
    (line,) = logged(capsys)
    assert (line["msg"], line["thread"], line["err"]) == ("a thread ended with an exception", "reader", "broken")


def test_an_exception_that_nobody_can_catch_is_a_line(capsys):
    set_up_logging(LoggingFormat.JSON, 0)

    class Broken:
        def __del__(self):
            raise ValueError("broken")

    Broken()
    (line,) = logged(capsys)
    assert (line["msg"], line["err"]) == ("an exception could not be raised", "broken")
    assert line["object"].endswith("Broken.__del__")


def test_lines_are_all_there_at_the_end_although_a_thread_writes_them(capsys):
    set_up_logging(LoggingFormat.JSON, 0)
    write_aside()
    logging.getLogger("bayplan").info("told")
    for handler in logging.getLogger().handlers:
        handler.close()
    assert [line["msg"] for line in logged(capsys)] == ["told"]
