import kopf
import pytest

from bayplan.controller.operator_thread import configure, field_selector

REST = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


@pytest.mark.parametrize(
    ("names", "selector"),
    [
        ({"bayplan"}, f"spec.schedulerName=bayplan,{REST}"),
        ({"default-scheduler"}, f"spec.schedulerName=default-scheduler,{REST}"),
        ({"a", "b"}, f"spec.schedulerName!=default-scheduler,{REST}"),
        ({"a", "default-scheduler"}, REST),
        ({"a,b=c\\d"}, f"spec.schedulerName=a\\,b\\=c\\\\d,{REST}"),
        ({"x,spec.nodeName!="}, f"spec.schedulerName=x\\,spec.nodeName!\\=,{REST}"),
    ],
)
def test_the_server_selects_unscheduled_pods_of_our_profiles(names, selector):
    assert field_selector(names) == selector


def test_kopf_is_set_up_to_watch_and_to_write_nothing():
    settings = kopf.OperatorSettings()
    configure(settings, {"bayplan"})
    assert settings.watching.field_selectors["", "v1", "pods"] == field_selector({"bayplan"})
    assert (settings.posting.enabled, settings.scanning.disabled) == (False, True)
    assert settings.process.ultimate_exiting_timeout is None


def test_no_state_is_read_from_an_object_or_written_on_it():
    settings = kopf.OperatorSettings()
    configure(settings, {"bayplan"})
    body, patch, key = kopf.Body({"metadata": {"name": "web"}, "spec": {}}), kopf.Patch(), kopf.HandlerId("bayplan")
    diffs, progress = settings.persistence.diffbase_storage, settings.persistence.progress_storage
    essence = diffs.build(body=body)
    diffs.store(body=body, patch=patch, essence=essence)
    progress.store(key=key, record={}, body=body, patch=patch)
    progress.touch(body=body, patch=patch, value="now")
    assert (essence, dict(patch)) == ({}, {})
    assert (diffs.fetch(body=body), progress.fetch(key=key, body=body)) == (None, None)
