"""Pods made from one template, so that what follows from the template is worked out once."""

from typing import Final

from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.resources import encoded

KEPT_BYTES: Final = 48 * 2**20
"""What the kept models take, as `PodInfo.size` counts it: of ordinary pods some thousands."""
_LARGEST = 8192
"""Templates of more bytes, as encoded, are not kept."""

_Key = tuple[str, tuple[tuple[str, str], ...], bytes]


class PodTemplates:
    """Knows pods by what a template gives them: namespace, labels, owners and spec; signatures of pods rely on it."""

    def __init__(self) -> None:
        self._models: RecentlyUsed[_Key, PodInfo] = RecentlyUsed(KEPT_BYTES, lambda _, model: model.size)

    def model_of(self, pod: PodInfo) -> PodInfo:
        """The first pod seen that is as `pod` in all that a template gives; `pod` itself if there was none.

        Whatever was worked out for the model from that alone, `pod` takes over.
        """
        key = _key(pod)
        if key is None:
            return pod
        model = self._models.get(key)
        if model is None:
            return self._models.put(key, pod)
        pod.take_over(model)
        return model


def _key(pod: PodInfo) -> _Key | None:
    meta = pod.pod.metadata
    rest = encoded((pod.pod.spec, meta.owner_references), largest=_LARGEST)
    return None if rest is None else (meta.namespace, tuple((meta.labels or {}).items()), rest)
