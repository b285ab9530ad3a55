"""Short ways to write the part of a configuration that a rule is about."""

from tests.config.configurations import V1, fit, profile_with_args

ARGS = "profiles[0].pluginConfig[0].args"
SHAPE = f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape"
STRATEGIES = '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def strategy(**fields):
    return fit(scoringStrategy=fields)


def ratio(*points):
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


def election(**fields):
    return V1 | {"leaderElection": fields}


def plugins(**sets):
    return V1 | {"profiles": [{"plugins": sets}]}


def extenders(*listed):
    return V1 | {"extenders": [{"urlPrefix": "x"} | each for each in listed]}


def affinity(required=None, preferred=None):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in required or ()]}
    block = {"requiredDuringSchedulingIgnoredDuringExecution": terms} if required else {}
    if preferred:
        block["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return profile_with_args("NodeAffinity", {"addedAffinity": block})


def spread(*constraints, **fields):
    return profile_with_args("PodTopologySpread", {"defaultConstraints": list(constraints), **fields})


ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
REQUIRED = f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PREFERRED = f"{ARGS}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
