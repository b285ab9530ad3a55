"""Which device packing takes and how full a node is of devices, one device at a time and in fractions."""

from fractions import Fraction

GI = 2**30


def least_left_over(devices, sets, taken, wanted):
    """The name of the device that leaves least behind for a request of so many GiB of memory; None if none will do.

    `devices` are dicts of `name`, `memory`, `shared` and `consumes` (by counter, for one set); `sets` has the counters
    of each set; `taken` says by name how many GiB of a device are taken, or True if all of it.
    """
    left = counters_left(devices, sets, taken)

    def takes(device):
        return wanted if device["shared"] else device["memory"]

    able = [
        each
        for each in devices
        if taken.get(each["name"]) is not True
        and wanted + taken.get(each["name"], 0) <= each["memory"]
        and _fits(each, left)
    ]

    def key(device):
        free = Fraction(0)
        if device["shared"]:
            free = 1 - Fraction(wanted + taken.get(device["name"], 0), device["memory"])
        if not device["consumes"]:
            return takes(device), 0, 0, 0, free
        name = device["set"]
        after = {**left, name: {c: left[name][c] - device["consumes"].get(c, 0) for c in left[name]}}
        blocked = [
            other
            for other in devices
            if other is not device
            and other.get("set") == name
            and other["consumes"]
            and not taken.get(other["name"])
            and _fits(other, left)
            and not _fits(other, after)
        ]
        return (
            takes(device),
            _weight(device, sets),
            sum(_weight(other, sets) for other in blocked),
            sum(Fraction(after[name][c], total) for c, total in sets[name].items()),
            free,
        )

    return min(able, key=key)["name"] if able else None


def utilization(devices, sets, taken):
    """How much of the devices is taken, 0..1: each counter set is one, and each device without counters."""
    left = counters_left(devices, sets, taken)
    shares = [1 - sum(Fraction(left[name][c], total) for c, total in of.items()) / len(of) for name, of in sets.items()]
    for each in devices:
        if not each["consumes"]:
            amount = taken.get(each["name"], 0)
            shares.append(Fraction(1) if amount is True else Fraction(amount, each["memory"]))
    return sum(shares) / len(shares)


def counters_left(devices, sets, taken):
    left = {name: dict(of) for name, of in sets.items()}
    for each in devices:
        if taken.get(each["name"]):
            for counter, amount in each["consumes"].items():
                left[each["set"]][counter] -= amount
    return left


def _fits(device, left):
    return all(left[device["set"]][counter] >= amount for counter, amount in device["consumes"].items())


def _weight(device, sets):
    return sum(Fraction(amount, sets[device["set"]][counter]) for counter, amount in device["consumes"].items())
