"""The families of scenes, and under which configurations each is recorded."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.oracle import extenders
from tests.oracle.case import Scene
from tests.oracle.configurations import CONFIGURATIONS
from tests.oracle.dice import Dice
from tests.oracle.families import (
    changes,
    devices,
    everything,
    extended,
    extension_points,
    features,
    nominations,
    parts,
    placement,
    pod_affinity,
    preemption,
    repeats,
    resources,
    sampling,
    spread,
    updates,
    volumes,
)
from tests.oracle.families.priorities import prioritise
from tests.oracle.profiles import OTHER_SCHEDULER, SCHEDULER
from tests.oracle.switched_off import SWITCHED_OFF, configuration_without


@dataclass(frozen=True, slots=True)
class Family:
    """How scenes are made, `cases` of them unless told otherwise, under each configuration in turn.

    With `afresh` each case has a kube-scheduler of its own, as its search for nodes must start at the first. Only what
    is `simulated` can be told in a file that `bayplan simulate` reads.
    """

    generate: Callable[[Dice], Scene]
    cases: int
    configurations: tuple[str, ...]
    afresh: bool = False
    simulated: bool = True


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
"""Those about the rules of pods; in every third case some of these may preempt others."""

_CANDIDATES = ("all-nodes", "few-nodes", "all-nodes", "defaults", "all-nodes", "a-third")

PREEMPTION_FAMILIES: dict[str, Family] = {
    "preemption": Family(preemption.generate, 200, _CANDIDATES, simulated=False),
    "preemption-storage": Family(preemption.generate_storage, 46, _CANDIDATES, simulated=False),
    "nominated": Family(preemption.generate_nominated, 60, _CANDIDATES, simulated=False),
    "not-started": Family(preemption.generate_not_started, 40, ("default",), simulated=False),
}
"""Those whose subject is preemption."""

FURTHER_FAMILIES: dict[str, Family] = {
    "sampling": Family(
        sampling.generate,
        32,
        ("percentage", "percentage-of-profiles", "percentage-adaptive", "percentage-of-one-profile"),
        afresh=True,
    ),
    "first-fit": Family(sampling.generate_few, 30, ("no-scores", "no-scores-but-filters"), afresh=True),
    "repeats": Family(repeats.generate, 40, ("spread-list-empty", "own-plugins", "no-pod-rules"), simulated=False),
    **{
        configuration_without(point): Family(
            partial(extension_points.generate, point),
            extension_points.cases(point),
            (configuration_without(point),),
            simulated=point != "postFilter",
        )
        for point in SWITCHED_OFF
    },
    "image-updates": Family(updates.generate_images, 40, ("default", "weights"), simulated=False),
    "changes": Family(changes.generate, 40, ("default", "pod-weights", "most-allocated"), simulated=False),
    "resizes": Family(updates.generate_resizes, 40, ("default", "most-allocated"), simulated=False),
    "extenders": Family(extended.generate, 56, tuple(extenders.CONFIGURATIONS), simulated=False),
    "devices": Family(
        devices.generate, 300, ("default", "default", "default", "ratio-packing", "most-weighted"), simulated=False
    ),
    "nominations": Family(
        nominations.generate,
        40,
        ("two-profiles", "default-and-other", "no-post-filter"),
        simulated=False,
    ),
}
"""Those about what a user may configure or meet besides the rules of pods."""

ALL_FAMILIES = FAMILIES | PREEMPTION_FAMILIES | FURTHER_FAMILIES


def scene_of(family: str, seed: int, index: int) -> tuple[str, Scene]:
    """The configuration's name and the scene of one case; the same arguments give the same scene."""
    made = ALL_FAMILIES[family]
    configuration = made.configurations[index % len(made.configurations)]
    dice = Dice(family, seed, index)
    scene = made.generate(dice)
    if family in FAMILIES and dice.maybe(1 / 3):
        prioritise(dice, scene)
    scene.objects = [*parts.namespaces(), *scene.objects]
    names = {each["schedulerName"] for each in CONFIGURATIONS[configuration]["profiles"]}
    for place, each in enumerate(scene.incoming):
        spec = each["spec"]
        if configuration == "two-profiles" and family in FAMILIES and place % 2 == 0:
            spec["schedulerName"] = OTHER_SCHEDULER
        if spec["schedulerName"] not in names:
            spec["schedulerName"] = SCHEDULER
    return configuration, scene
