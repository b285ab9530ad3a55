"""PostFilter plugins one after the other, until one makes room for a pod that no node fits."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState, PostFilterPlugin, PostFilterResult, Rejections
from bayplan.framework.plugin_calls import PluginCalls, label_of
from bayplan.framework.status import Code, Status


def first_that_makes_room(
    plugins: Sequence[PostFilterPlugin],
    calls: PluginCalls,
    arguments: tuple[CycleState, PodInfo, NodeTable, Rejections],
) -> PostFilterResult:
    """Return the first result of a plugin that makes room, or one that joins why none does.

    A final answer ends the search and stands alone; after an error an earlier nomination stays. Otherwise the
    nomination is the last that any plugin had something to say about, `retry_after` the soonest that any gave
    (upstream: framework/runtime/framework.go RunPostFilterPlugins).
    """
    reasons: list[str] = []
    retries: list[float] = []
    nominated_node_name: str | None = None
    post_filtered: list[str] = []
    for plugin in plugins:
        post_filtered.append(plugin.name)
        started = perf_counter()
        result = plugin.post_filter(*arguments)
        calls.post_filtered(plugin.name, label_of(result.status), perf_counter() - started)
        if result.status.code is Code.SUCCESS:
            return replace(result, post_filtered=tuple(post_filtered))
        if result.retry_after is not None:
            retries.append(result.retry_after)
        code = result.status.code
        if code is not Code.UNSCHEDULABLE:
            reasons = [*result.status.reasons]
            nominated_node_name = None if code is Code.ERROR else result.nominated_node_name
            break
        reasons.extend(result.status.reasons)
        if result.nominated_node_name is not None:
            nominated_node_name = result.nominated_node_name
    status = Status(Code.UNSCHEDULABLE, tuple(reasons))
    retry_after = min(retries, default=None)
    return PostFilterResult(status, nominated_node_name, retry_after=retry_after, post_filtered=tuple(post_filtered))
