from prometheus_client import CollectorRegistry, generate_latest

from bayplan.server.metrics import AtScrape
from bayplan.server.state import leader_election_metrics


class Elector:
    leading = False
    slow_paths = 0


def test_a_scrape_tells_whether_it_leads_and_how_often_a_renewal_took_the_slow_path():
    elector, registry = Elector(), CollectorRegistry()
    registry.register(
        AtScrape(lambda: leader_election_metrics("bayplan", is_leading=elector.leading, slow_paths=elector.slow_paths))
    )
    assert b'leader_election_master_status{name="bayplan"} 0.0\n' in generate_latest(registry)
    elector.leading, elector.slow_paths = True, 2
    text = generate_latest(registry)
    assert b'leader_election_master_status{name="bayplan"} 1.0\n' in text
    assert b'leader_election_slowpath_total{name="bayplan"} 2.0\n' in text
