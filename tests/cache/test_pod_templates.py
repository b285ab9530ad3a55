from tests.builders import make_pod

from bayplan.cache.pod_info import PodInfo
from bayplan.cache.pod_templates import PodTemplates


def pod(name: str, **given) -> PodInfo:
    return PodInfo(make_pod(name, uid=name, **given))


def test_pods_of_one_template_have_one_model():
    templates = PodTemplates()
    first = pod("a", cpu="1", labels={"app": "web"})
    assert templates.model_of(first) is first
    assert templates.model_of(pod("b", cpu="1", labels={"app": "web"})) is first
    assert templates.model_of(first) is first


def test_whatever_a_template_gives_makes_another_model():
    others = [
        pod("a", cpu="1"),
        pod("b", cpu="2"),
        pod("c", cpu="1", labels={"app": "web"}),
        pod("d", cpu="1", namespace="other"),
        pod("e", cpu="1", owner="ReplicaSet/r"),
    ]
    templates = PodTemplates()
    assert [templates.model_of(each) for each in others] == others


def test_what_the_model_has_worked_out_is_shared():
    templates = PodTemplates()
    model, other = pod("a", cpu="1", memory="1Gi"), pod("b", cpu="1", memory="1Gi")
    templates.model_of(model)
    worked_out = model.requests, model.host_ports, model.affinity_terms
    templates.model_of(other)
    assert all(
        a is b for a, b in zip((other.requests, other.host_ports, other.affinity_terms), worked_out, strict=True)
    )


def test_text_and_numbers_that_no_message_carries_are_no_template():
    templates = PodTemplates()
    for strange in (pod("a", cpu="\ud800"), pod("b", cpu=10**400)):
        assert templates.model_of(strange) is strange
        again = PodInfo(strange.pod)
        assert templates.model_of(again) is again


def test_large_templates_are_not_kept():
    templates = PodTemplates()
    templates.model_of(pod("a", cpu="1" * 10_000))
    large = pod("b", cpu="1" * 10_000)
    assert templates.model_of(large) is large
