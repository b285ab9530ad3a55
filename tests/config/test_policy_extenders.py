"""Extenders of a Policy, in the spelling of Kubernetes 1.16."""

from datetime import timedelta

import pytest
from tests.config.configurations import POLICY, V1, V1ALPHA1, complaints, load, write
from tests.config.policies_1_16 import EXTENDER

from bayplan.config.connections import ExtenderManagedResource, ExtenderTLSConfig
from bayplan.config.convert import to_minimal_yaml


def extender(directory, **fields):
    (only,) = load(directory, POLICY | {"extenders": [{"urlPrefix": "http://x"} | fields]}).extenders
    return only


def test_the_samples_extender_is_todays(tmp_path):
    today = EXTENDER.copy()
    today["enableHTTPS"] = today.pop("enableHttps")
    policy, v1 = POLICY | {"extenders": [EXTENDER]}, V1 | {"extenders": [today]}
    assert load(tmp_path, policy).extenders == load(tmp_path, v1).extenders


def test_every_field_is_taken_over(tmp_path):
    found = extender(
        tmp_path,
        preemptVerb="preempt",
        enableHttps=True,
        nodeCacheCapable=True,
        ignorable=True,
        managedResources=[{"name": "example.com/a", "ignoredByScheduler": True}],
        tlsConfig={"insecure": True, "serverName": "s", "certFile": "c", "keyFile": "k", "caFile": "a"},
    )
    assert (found.preempt_verb, found.enable_https, found.node_cache_capable, found.ignorable) == (
        "preempt",
        True,
        True,
        True,
    )
    assert found.managed_resources == (ExtenderManagedResource("example.com/a", ignored_by_scheduler=True),)
    tls = ExtenderTLSConfig(insecure=True, server_name="s", cert_file="c", key_file="k", ca_file="a")
    assert found.tls_config == tls


@pytest.mark.parametrize(
    ("written", "timeout"),
    [
        (30_000_000_000, timedelta(seconds=30)),
        (3e10, timedelta(seconds=30)),
        (1, timedelta(microseconds=1)),
        ("100ms", timedelta(milliseconds=100)),
    ],
)
def test_a_timeout_may_be_in_nanoseconds(tmp_path, written, timeout):
    assert extender(tmp_path, httpTimeout=written).http_timeout == timeout


@pytest.mark.parametrize("version", ["v1beta1", "", None])
def test_an_api_version_which_samples_of_old_have_is_told(tmp_path, version):
    notes = []
    content = POLICY | {"extenders": [{"urlPrefix": "http://x", "apiVersion": version}]}
    found = load(tmp_path, content, notes=notes)
    assert list(map(str, notes)) == ["extenders[0].apiVersion: has no effect, as in 1.16"] * bool(version)
    assert found == load(tmp_path, POLICY | {"extenders": [{"urlPrefix": "http://x"}]})


def test_keys_of_any_case_are_read_as_they_were(tmp_path):
    found = extender(tmp_path, BindVerb="bind", TLSConfig={"Insecure": True, "CAFile": "a"})
    assert found.bind_verb == "bind"
    assert found.tls_config == ExtenderTLSConfig(insecure=True, ca_file="a")


def test_a_policy_file_gives_its_extenders_to_the_configuration_that_names_it(tmp_path):
    write(tmp_path, POLICY | {"extenders": [EXTENDER]}, "policy.json")
    content = V1ALPHA1 | {"algorithmSource": {"policy": {"file": {"path": "policy.json"}}}}
    assert load(tmp_path, content).extenders == load(tmp_path, POLICY | {"extenders": [EXTENDER]}).extenders


def test_extenders_are_written_as_v1(tmp_path):
    configuration = load(tmp_path, POLICY | {"extenders": [EXTENDER | {"httpTimeout": 2_000_000_000}]})
    text = to_minimal_yaml(configuration)
    assert "httpTimeout: 2s" in text
    assert load(tmp_path, text) == configuration


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"prioritizeVerb": "p"}, "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"),
        ({"filterverbs": "f"}, 'extenders[0].filterverbs: unknown field, did you mean "filterVerb"?'),
        ({"httpTimeout": 1.5}, "extenders[0].httpTimeout: Invalid value: 1.5: must be an integer"),
        ({"httpTimeout": True}, 'extenders[0].httpTimeout: Invalid value: true: must be a duration such as "15s"'),
        ({"managedResources": [5]}, "extenders[0].managedResources[0]: Invalid value: 5: must be an object"),
    ],
)
def test_a_mistake_is_an_error_at_its_field(tmp_path, fields, expected):
    assert expected in complaints(tmp_path, POLICY | {"extenders": [{"urlPrefix": "http://x"} | fields]})
