from bayplan.api.objects import ObjectMeta
from bayplan.api.workload_objects import Namespace
from bayplan.cache.key_log import KeyLog
from bayplan.cache.listers import Listers


def test_a_reader_gets_each_key_that_changed_since_it_looked_once():
    log = KeyLog()
    log.append("a")
    seen = log.position
    assert log.since(seen) == []
    for key in ("b", "a", "b"):
        log.append(key)
    assert log.since(seen) == ["b", "a"]
    assert log.since(0) == ["a", "b"]


def test_a_reader_that_stayed_away_too_long_is_told_so():
    log = KeyLog()
    for number in range(10_000):
        log.append(str(number))
    assert log.position == 10_000
    assert log.since(0) is None
    assert log.since(9_998) == ["9998", "9999"]


def test_a_lister_logs_what_came_and_went():
    lister = Listers().of(Namespace)
    lister.set(Namespace(metadata=ObjectMeta(name="prod")))
    seen = lister.version
    lister.delete("prod")
    lister.delete("prod")
    assert lister.changes.since(seen) == ["prod"]
