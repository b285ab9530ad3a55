"""Pods made from one template, so that what follows from the template is worked out once."""

import msgspec

from bayplan.cache.pod_info import PodInfo

_KEPT_TEMPLATES = 2048
_LARGEST = 8192
"""Templates of more bytes are not kept: with the number kept this bounds the memory made-up pods can take."""

_Key = tuple[str, tuple[tuple[str, str], ...], bytes]
_encode = msgspec.msgpack.Encoder().encode


class PodTemplates:
    """Knows pods by what a template gives them: namespace, labels, owners and spec; signatures of pods rely on it."""

    def __init__(self) -> None:
        self._models: dict[_Key, PodInfo] = {}

    def model_of(self, pod: PodInfo) -> PodInfo:
        """The first pod seen that is as `pod` in all that a template gives; `pod` itself if there was none.

        Whatever was worked out for the model from that alone, `pod` takes over.
        """
        key = _key(pod)
        if key is None:
            return pod
        model = self._models.get(key)
        if model is None:
            if len(self._models) >= _KEPT_TEMPLATES:
                self._models.clear()
            self._models[key] = pod
            return pod
        pod.take_over(model)
        return model


def _key(pod: PodInfo) -> _Key | None:
    meta = pod.pod.metadata
    try:
        encoded = _encode((pod.pod.spec, meta.owner_references))
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        # Text or a number that no message can carry; a file can hold such.
        return None
    return None if len(encoded) > _LARGEST else (meta.namespace, tuple((meta.labels or {}).items()), encoded)
