import logging
from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod
from tests.plugins.preemption.worlds import World
from tests.scheduler.extender.scene import ExtendedScene

from bayplan.config.connections import Extender
from bayplan.config.load import default_configuration
from bayplan.scheduler.decision import Placement
from bayplan.scheduler.extender.wire import ExtenderError


@pytest.mark.parametrize(("made", "end"), [("//me:topsecret@{}", ""), ("//{}", "?token=topsecret")])
async def test_a_secret_in_the_url_is_not_shown(stack, server, caplog, made, end):
    caplog.set_level(logging.DEBUG)
    server.status = 500
    extender = Extender(url_prefix=f"http:{made.format(server.url.partition('//')[2])}{end}", filter_verb="filter")

    async def decide(extender):
        configuration = replace(default_configuration(), extenders=(extender,))
        scene = ExtendedScene(stack, World(make_node("n0"), configuration=configuration), [extender])
        return await scene.schedule(make_pod("p"))

    with pytest.raises(ExtenderError, match="failed filter with extender at URL http://127") as caught:
        await decide(extender)
    assert isinstance(await decide(replace(extender, ignorable=True)), Placement)
    assert "extender failed and is ignored" in caplog.text
    told = [each.getMessage() for each in caplog.records if each.name.startswith("bayplan")]
    assert "topsecret" not in f"{caught.value} {told}"
