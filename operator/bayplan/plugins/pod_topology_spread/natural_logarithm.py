"""The natural logarithm to the last bit as kube-scheduler computes it, which C libraries round differently at times."""

import math
from typing import Final

# The minimax polynomial of the FreeBSD msun library (e_log.c), which Go's math package follows.
_ODD: Final = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10


def natural_logarithm(number: int) -> float:
    """The logarithm of a whole `number` of at least 1; in spread scores a last bit can tip a rounding."""
    fraction, exponent = math.frexp(number)
    if fraction < math.sqrt(0.5):
        fraction, exponent = fraction * 2, exponent - 1
    f = fraction - 1
    s = f / (2 + f)
    square = s * s
    fourth = square * square
    odd = square * (_ODD[0] + fourth * (_ODD[1] + fourth * (_ODD[2] + fourth * _ODD[3])))
    even = fourth * (_EVEN[0] + fourth * (_EVEN[1] + fourth * _EVEN[2]))
    half = 0.5 * f * f
    return exponent * _LN2_HIGH - ((half - (s * (half + (odd + even)) + exponent * _LN2_LOW)) - f)
