"""A pod in the API server's words."""

import logging

import msgspec

from bayplan.api.objects import Pod
from bayplan.api.watch_event import UNREADABLE

logger = logging.getLogger(__name__)

_decoder = msgspec.json.Decoder(Pod)


def read_pod(body: bytes | msgspec.Raw) -> Pod | None:
    """The pod that an answer, or an item of a list, is; None, told at debug level, if it is none that can be read."""
    try:
        return _decoder.decode(body)
    except (ValueError, *UNREADABLE) as error:
        logger.debug("no pod that can be read error=%s", error)
        return None
