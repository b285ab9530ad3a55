from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.workload_objects import Namespace, Service
from bayplan.cache.listers import Listers


def service(name, namespace="default", **meta):
    return Service(metadata=ObjectMeta(name=name, namespace=namespace, **meta))


def test_objects_are_found_by_key_and_by_namespace():
    lister = Listers().of(Service)
    a, b, other = service("a"), service("b"), service("a", "other")
    for each in (a, b, other):
        lister.set(each)
    assert (lister.get("default/a"), lister.get("other/a"), lister.get("default/c")) == (a, other, None)
    assert list(lister.in_namespace("default")) == [a, b]
    assert list(lister.in_namespace("none")) == []
    assert len(lister) == 3


def test_what_has_no_namespace_goes_by_its_name():
    lister = Listers().of(Namespace)
    prod = Namespace(metadata=ObjectMeta(name="prod"))
    lister.set(prod)
    assert lister.get("prod") is prod


def test_the_version_grows_with_every_change_and_only_then():
    lister = Listers().of(Service)
    lister.set(service("a"))
    lister.set(service("a", resource_version="2"))
    assert (lister.version, len(lister)) == (2, 1)
    assert lister.delete("default/b") is None
    assert lister.version == 2
    assert lister.delete("default/a") is not None
    assert (lister.version, len(lister), list(lister.in_namespace("default"))) == (3, 0, [])


def test_a_kind_is_wanted_once_somebody_asks_for_it():
    listers = Listers()
    assert list(listers.wanted()) == []
    assert listers.of(Service) is listers.of(Service)
    assert list(listers.wanted()) == [Service]


def test_a_lister_logs_what_came_and_went():
    lister = Listers().of(Namespace)
    lister.set(Namespace(metadata=ObjectMeta(name="prod")))
    seen = lister.version
    lister.delete("prod")
    lister.delete("prod")
    assert lister.changes.since(seen) == ["prod"]
