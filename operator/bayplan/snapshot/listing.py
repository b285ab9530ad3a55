"""The objects of a live cluster, listed kind by kind."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from bayplan.api.backoff import Backoff, WatchTiming, is_away
from bayplan.api.credentials import Credentials
from bayplan.api.device_objects import OpaqueDeviceConfiguration
from bayplan.api.errors import DECODE_ERRORS, CredentialsError
from bayplan.api.kinds import Resource
from bayplan.api.objects import Condition, NodeStatus, PodStatus, Volume
from bayplan.api.storage_objects import PersistentVolumeSpec
from bayplan.api.watch_event import outline_of
from bayplan.api.watch_source import PAGE_SIZE, AnswerError, BrokenStreamError, ListPage, WatchSource, list_pages
from bayplan.api.workload_objects import PodGroupStatus
from bayplan.client.errors import ClientError
from bayplan.config.errors import quote
from bayplan.simulate.decode_errors import field_error
from bayplan.simulate.documents import Decoder
from bayplan.simulate.workloads import JobStatus
from bayplan.snapshot.rewriting import Rewriting, Rule, as_it_is

_READ_OF_DISKS: Final[Mapping[str, Collection[str]]] = {
    "gce_persistent_disk": ("pdName", "readOnly"),
    "aws_elastic_block_store": ("volumeID",),
    "azure_disk": ("diskURI", "kind"),
    "cinder": ("volumeID",),
    "portworx_volume": ("volumeID",),
}
"""What plugins read of in-tree disks, by field of `Volume` and of `PersistentVolumeSpec`."""
_READ_OF_VOLUMES: Final[Mapping[str, Collection[str]]] = {
    **_READ_OF_DISKS,
    "ephemeral": (),
    "azure_file": (),
    "vsphere_volume": (),
    "rbd": ("pool", "image", "monitors", "readOnly"),
    "iscsi": ("iqn", "readOnly"),
    "csi": ("driver",),
}
"""What plugins read of a pod's own volumes, by field of `Volume`; drivers may keep secrets beside it."""
_READ_OF_PODS: Final = ("PodResizePending", "DisruptionTarget", "Ready", "PodScheduled")
_READ_OF_JOBS: Final = ("Complete", "Failed")


def _only(keys: Collection[str]) -> Rule:
    return lambda source: {key: value for key, value in source.items() if key in keys}


def _conditions(types: Collection[str]) -> Rule:
    def rule(conditions: Sequence[Condition]) -> list[Condition] | None:
        # That pods were scheduled is known by their nodes.
        told = (each for each in conditions if (each.type, each.status) != ("PodScheduled", "True"))
        return [Condition(each.type, each.status, each.reason) for each in told if each.type in types] or None

    return rule


_RULES: Final[Mapping[tuple[type, str], Rule]] = {
    (PodStatus, "conditions"): _conditions(_READ_OF_PODS),
    (JobStatus, "conditions"): _conditions(_READ_OF_JOBS),
    (NodeStatus, "conditions"): lambda conditions: None,
    (PodGroupStatus, "conditions"): lambda conditions: None,
    (OpaqueDeviceConfiguration, "parameters"): lambda parameters: None,
    **{(Volume, field): _only(keys) for field, keys in _READ_OF_VOLUMES.items()},
    **{(PersistentVolumeSpec, field): _only(keys) for field, keys in _READ_OF_DISKS.items()},
}

trimmed: Final = Rewriting(_RULES, as_it_is)
"""An object without conditions that nobody reads, and of a pod's own volumes only what plugins read.

Annotations, environments, commands and managed fields are gone before: what is read from the API server is decoded to
what simulations read.
"""


TRIES: Final = 6
"""How often a page is asked for while the API server is in trouble: for about a quarter of a minute."""
_MAX_RETRY_AFTER: Final = 30.0


class ListingError(ClientError):
    """Raised where a kind cannot be listed; the one-line text says which, and why."""


class ForbiddenError(ListingError):
    """Raised where the right to list a kind is missing."""


@dataclass(slots=True)
class ListedObjects:
    """The objects of one kind as they were at one resourceVersion."""

    objects: list[Any] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """What could not be read and is left out: a line each, with the name and the field."""


async def list_kind(
    credentials: Credentials,
    resource: Resource,
    *,
    page_size: int = PAGE_SIZE,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    open_source: Callable[..., WatchSource] = WatchSource,
) -> ListedObjects:
    """Return all objects of the kind, trimmed; a consistent read, whose pages are all of one resourceVersion.

    A list that outlives its version is begun anew, and at last asked for in one piece. Trouble of the API server is
    waited for a while.

    Raises:
        ForbiddenError: the right to list the kind is missing.
        ListingError: the API server refuses otherwise, or does not answer.
        CredentialsError: there is no way to log in.
    """
    timing = WatchTiming()
    source = open_source(credentials, resource.path, list_timeout=timing.list_timeout, inactivity=timing.inactivity)
    try:
        return await _list(source, resource, page_size, sleep)
    except AnswerError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return ListedObjects()
        kind = ForbiddenError if error.status == HTTPStatus.FORBIDDEN else ListingError
        raise kind(f"{resource.plural}: {error}") from None
    except CredentialsError:
        raise
    except (BrokenStreamError, aiohttp.ClientError, OSError) as error:
        raise ListingError(f"{resource.plural}: {type(error).__name__}: {error}") from None
    finally:
        await source.close()


async def _list(
    source: WatchSource, resource: Resource, page_size: int, sleep: Callable[[float], Awaitable[None]]
) -> ListedObjects:
    decode = Decoder(resource.type)
    found = ListedObjects()
    async for is_first, page in list_pages(partial(_page, source, sleep), page_size=page_size, restarts=2):
        if is_first:
            found = ListedObjects()
        for raw in page.items or ():
            try:
                found.objects.append(trimmed(decode(raw)))
            except DECODE_ERRORS as error:
                key = outline_of(raw).metadata.key
                name = "of unreadable name" if key == "?" else quote(key)
                found.unreadable.append(f"{resource.kind} {name}: {field_error(error)}")
    return found


async def _page(source: WatchSource, sleep: Callable[[float], Awaitable[None]], query: Mapping[str, str]) -> ListPage:
    backoff = Backoff()
    while True:
        delay = None
        try:
            return await source.page(query)
        except AnswerError as error:
            is_trouble = error.status == HTTPStatus.TOO_MANY_REQUESTS or is_away(error.status)
            if not is_trouble or backoff.failures + 1 >= TRIES:
                raise
            delay = error.retry_after
        except (aiohttp.ClientError, OSError):
            if backoff.failures + 1 >= TRIES:
                raise
        await sleep(max(backoff.failed(away=True), min(delay or 0.0, _MAX_RETRY_AFTER)))
