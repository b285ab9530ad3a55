"""What can become of bytes that somebody else wrote."""

from typing import Final

import msgspec

DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding any bytes or values by msgspec can raise; whoever reads answers, files and bodies catches them."""
