"""Everything that this package raises."""

from __future__ import annotations

import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from pydantic import ValidationError

from ._response import Response
from .models import ErrorBody


class SignpostError(Exception):
    """Base of all errors of this package."""

    #: The key of a creation that failed, also one that this package has generated: with it and the same values, the call can
    #: be repeated within 24 hours without creating twice. Of `ApiError` and `ConnectionError` only.
    idempotency_key: str | None = None


class ConnectionError(SignpostError):  # noqa: A001
    """No complete response arrived, in any attempt: the connection failed, or each attempt took too long."""


class ApiError(SignpostError):
    """An error response. Its text is the API's sentence, which a person can act on."""

    status: int
    #: For programs; only with some 403s.
    code: str | None
    #: The field that the sentence is about, if it is about one: `target_url`.
    field: str | None
    #: Names this response in support requests.
    request_id: str | None
    #: The headers of the response, for example `X-RateLimit-Reset`.
    headers: httpx.Headers

    def __init__(self, status: int, body: ErrorBody, headers: httpx.Headers) -> None:
        super().__init__(body.error)
        self.status = status
        self.code = body.code
        # A sentence about a field begins with its name.
        about = re.match(r"([a-z]\w*[\w.\[\]]*): ", body.error) if status == 400 else None
        self.field = about and about[1]
        self.request_id = headers.get("x-request-id")
        self.headers = headers
        self._body = body

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes copies and pickles possible: by default, they would be created from the text alone."""
        return type(self), (self.status, self._body, self.headers), self.__dict__


class BadRequestError(ApiError):
    """400: the request is invalid; `field` says where, if it is a field."""


class AuthenticationError(ApiError):
    """401: the API key is missing or invalid."""


class PermissionDeniedError(ApiError):
    """403: the plan does not allow it, or a limit of the account is reached; `code` tells which."""

    #: With `qr_limit_reached`: the codes allowed and in use.
    limit: int | None
    used: int | None

    def __init__(self, status: int, body: ErrorBody, headers: httpx.Headers) -> None:
        super().__init__(status, body, headers)
        self.limit = body.limit
        self.used = body.used


class NotFoundError(ApiError):
    """404: the account has no such resource."""


class ConflictError(ApiError):
    """409.

    With `retry_after`: a request with this idempotency key is still being carried out; repeat the call with the same key.
    Without: the key was used for something else, or the code has no target to change or nothing to encode.
    """

    #: Seconds until a repetition may have the result.
    retry_after: int | None

    def __init__(self, status: int, body: ErrorBody, headers: httpx.Headers) -> None:
        super().__init__(status, body, headers)
        self.retry_after = retry_after_seconds(headers)


class TooLargeError(ApiError):
    """413: the body or the batch is too large."""


class RateLimitError(ApiError):
    """429: the monthly quota is used up, or requests came too fast for longer than all retries took."""

    #: Seconds until a request can succeed; None if the monthly quota is used up: see `X-RateLimit-Reset`.
    retry_after: int | None

    def __init__(self, status: int, body: ErrorBody, headers: httpx.Headers) -> None:
        super().__init__(status, body, headers)
        self.retry_after = retry_after_seconds(headers)


class ServerError(ApiError):
    """5xx: the service failed or was unavailable in every attempt."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: TooLargeError,
    429: RateLimitError,
}


def error_of(response: Response) -> ApiError:
    """The error for a response. A proxy's response may have a body that is not the API's."""
    status = response.status
    try:
        body = ErrorBody.model_validate_json(response.content)
    except ValidationError:
        # Not followed, as that could send the key elsewhere.
        location = response.headers.get("location") if status < 400 else None
        redirect = f": a redirect to {location}" if location else ""
        body = ErrorBody(error=f"HTTP {status}{redirect}")
    error = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    return error(status, body, response.headers)


#: The longest `Retry-After`, in seconds, that is distinguished: 24 days. `time.sleep` refuses far longer ones.
LONGEST_RETRY_AFTER = 24 * 86_400


def retry_after_seconds(headers: httpx.Headers) -> int | None:
    """`Retry-After` in seconds. Proxies may send it as a date (RFC 9110 §10.2.3)."""
    value = headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]+", value):
        # Python reads no number of more than 4,300 digits.
        digits = value.lstrip("0")[:10]
        return min(int(digits or "0"), LONGEST_RETRY_AFTER)
    try:
        date = parsedate_to_datetime(value) if value.endswith(" GMT") else None
    except (ValueError, OverflowError):
        date = None
    return None if date is None else min(max(0, math.ceil(date.timestamp() - time.time())), LONGEST_RETRY_AFTER)
