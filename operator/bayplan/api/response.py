"""What the API server answered, and what its answers say."""

import re

import msgspec

from bayplan.api.errors import DECODE_ERRORS


class ApiResponse(msgspec.Struct, frozen=True, gc=False):
    """An answer, whatever its status; `retry_after` is in seconds when the server gave one."""

    status: int
    body: bytes
    retry_after: float | None = None

    @property
    def reason(self) -> str:
        """The reason that the API server gave, as `NotFound`; empty where the answer is not its own."""
        return decode_status(self.body)[0]

    @property
    def problem(self) -> str:
        """Why the API server did not do what it was asked, as reason and message; relied on for Events and logs."""
        return ": ".join(filter(None, decode_status(self.body)))

    @property
    def is_refused_by_admission(self) -> bool:
        """Whether a webhook, a policy or a quota refused the write, or a webhook failed: it was not carried out.

        The API server says that in words alone (upstream: apiserver/pkg/admission/plugin/webhook/errors,
        plugin/policy/validating/dispatcher.go, plugin/resourcequota/controller.go).
        """
        return self.status >= 400 and _ADMISSION_REFUSAL.search(decode_status(self.body)[1]) is not None


_ADMISSION_REFUSAL = re.compile(
    r'failed calling webhook "|admission webhook ".*" denied the request|denied request: |exceeded quota: ', re.DOTALL
)


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""


_status_decoder = msgspec.json.Decoder(_Status)


def decode_status(body: bytes) -> tuple[str, str]:
    """Return (reason, message) of an API Status; of anything else, ("", the start of the body).

    Relied on for Events and logs; never raises.
    """
    try:
        status = _status_decoder.decode(body)
    except DECODE_ERRORS:
        return "", body[:200].decode("utf-8", errors="replace").strip()
    return status.reason, status.message


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, or None; API servers send no dates there."""
    return float(value) if value is not None and value.isascii() and value.isdigit() else None
