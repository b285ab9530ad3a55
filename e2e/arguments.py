"""Values of the command lines of benchmarks and suites."""

import argparse


def positive(text: str) -> int:
    """Return the number that an argument is; argparse reports one that is less than 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number
