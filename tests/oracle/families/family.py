"""The families of scenes, and under which configurations each is recorded."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.oracle.case import Scene
from tests.oracle.configurations import OTHER_SCHEDULER
from tests.oracle.dice import Dice
from tests.oracle.families import (
    everything,
    features,
    parts,
    placement,
    pod_affinity,
    preemption,
    resources,
    spread,
    volumes,
)


@dataclass(frozen=True, slots=True)
class Family:
    """How scenes are made, `cases` of them unless told otherwise, under each configuration in turn."""

    generate: Callable[[Dice], Scene]
    cases: int
    configurations: tuple[str, ...]


_SCORING = (
    "default",
    "most-allocated",
    "most-weighted",
    "least-weighted",
    "ratio-packing",
    "ratio-falling",
    "ratio-step",
    "balanced-many",
    "balanced-one",
    "ignored-resources",
    "one-score",
    "two-profiles",
)

FAMILIES: dict[str, Family] = {
    "resources": Family(resources.generate, 132, _SCORING),
    "taints": Family(placement.generate_taints, 48, ("default", "weights", "without-some", "own-plugins")),
    "node-affinity": Family(
        placement.generate_node_affinity, 60, ("default", "added-affinity", "weights", "filters-reordered")
    ),
    "ports-and-images": Family(
        placement.generate_ports_and_images, 50, ("default", "weights", "without-some", "own-plugins", "one-score")
    ),
    "mixed": Family(
        placement.generate_mixed,
        100,
        ("default", "added-affinity", "weights", "without-some", "own-plugins", "filters-reordered", *_SCORING[1:]),
    ),
    "spread": Family(spread.generate, 80, ("default", "spread-list", "pod-weights", "most-allocated")),
    "spread-defaults": Family(
        spread.generate_defaults, 60, ("default", "spread-list", "spread-list-empty", "pod-weights")
    ),
    "pod-affinity": Family(
        pod_affinity.generate, 100, ("default", "hard-weight-none", "hard-weight-most", "pod-weights")
    ),
    "volume-binding": Family(volumes.generate_binding, 80, ("default", "most-allocated")),
    "volume-scores": Family(volumes.generate_scores, 40, ("default", "most-allocated")),
    "volume-limits": Family(volumes.generate_limits, 60, ("default", "most-allocated")),
    "features": Family(features.generate, 30, ("default", "weights", "two-profiles")),
    "everything": Family(
        everything.generate,
        48,
        ("default", "pod-weights", "spread-list", "hard-weight-most", "no-pod-rules", "most-allocated"),
    ),
}

_CANDIDATES = ("all-nodes", "few-nodes", "all-nodes", "defaults", "all-nodes", "a-third")

PREEMPTION_FAMILIES: dict[str, Family] = {
    "preemption": Family(preemption.generate, 280, _CANDIDATES),
    "preemption-storage": Family(preemption.generate_storage, 46, _CANDIDATES),
    "nominated": Family(preemption.generate_nominated, 60, _CANDIDATES),
}
"""Those in which pods may preempt. The stored file of the first has the cases of both."""

ALL_FAMILIES = FAMILIES | PREEMPTION_FAMILIES


def scene_of(family: str, seed: int, index: int) -> tuple[str, Scene]:
    """The configuration's name and the scene of one case; the same arguments give the same scene."""
    made = ALL_FAMILIES[family]
    configuration = made.configurations[index % len(made.configurations)]
    scene = made.generate(Dice(family, seed, index))
    scene.objects = [*parts.namespaces(), *scene.objects]
    if configuration == "two-profiles":
        for each in scene.incoming[::2]:
            each["spec"]["schedulerName"] = OTHER_SCHEDULER
    return configuration, scene
