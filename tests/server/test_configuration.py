from prometheus_client import CollectorRegistry, generate_latest

from bayplan.server.configuration import ConfigurationCollector


def test_it_says_whether_and_when_the_newest_configuration_was_taken_over():
    now = 1000.0
    registry = CollectorRegistry()
    collector = ConfigurationCollector(lambda: now)
    registry.register(collector)

    def said():
        lines = generate_latest(registry).decode().splitlines()
        return [line.removeprefix("bayplan_config_") for line in lines if not line.startswith("#")]

    def expected(successful, at, failures, successes):
        return [
            f"last_reload_successful {successful}",
            f"last_reload_success_timestamp_seconds {at}",
            f'reloads_total{{result="success"}} {successes}',
            f'reloads_total{{result="failure"}} {failures}',
        ]

    assert said() == expected(1.0, 1000.0, 0.0, 0.0)
    now = 2000.0
    collector.ended(successful=False)
    assert said() == expected(0.0, 1000.0, 1.0, 0.0)
    collector.ended(successful=True)
    assert said() == expected(1.0, 2000.0, 1.0, 1.0)
