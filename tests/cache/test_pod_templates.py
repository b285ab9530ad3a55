from tests.builders import make_pod_info

from bayplan.cache.pod_info import PodInfo, PodTemplates


def test_pods_of_one_template_have_one_model():
    templates = PodTemplates()
    first = make_pod_info("a", cpu="1", labels={"app": "web"})
    assert templates.model_of(first) is first
    assert templates.model_of(make_pod_info("b", cpu="1", labels={"app": "web"})) is first
    assert templates.model_of(first) is first


def test_whatever_a_template_gives_makes_another_model():
    others = [
        make_pod_info("a", cpu="1"),
        make_pod_info("b", cpu="2"),
        make_pod_info("c", cpu="1", labels={"app": "web"}),
        make_pod_info("d", cpu="1", namespace="other"),
        make_pod_info("e", cpu="1", owner="ReplicaSet/r"),
    ]
    templates = PodTemplates()
    assert [templates.model_of(each) for each in others] == others


def test_what_the_model_has_worked_out_is_shared():
    templates = PodTemplates()
    model, other = make_pod_info("a", cpu="1", memory="1Gi"), make_pod_info("b", cpu="1", memory="1Gi")
    templates.model_of(model)
    worked_out = model.requests, model.host_ports, model.affinity_terms
    templates.model_of(other)
    assert all(
        a is b for a, b in zip((other.requests, other.host_ports, other.affinity_terms), worked_out, strict=True)
    )


def test_text_and_numbers_that_no_message_carries_are_no_template():
    templates = PodTemplates()
    for strange in (make_pod_info("a", cpu="\ud800"), make_pod_info("b", cpu=10**400)):
        assert templates.model_of(strange) is strange
        again = PodInfo(strange.pod)
        assert templates.model_of(again) is again


def test_large_templates_are_not_kept():
    templates = PodTemplates()
    templates.model_of(make_pod_info("a", cpu="1" * 10_000))
    large = make_pod_info("b", cpu="1" * 10_000)
    assert templates.model_of(large) is large
