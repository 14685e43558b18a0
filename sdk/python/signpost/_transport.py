"""Requests with retries."""

from __future__ import annotations

import json
import math
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from ._errors import ApiError, ConflictError, ConnectionError, SignpostError, error_of, retry_after_seconds
from ._model import Model
from ._response import Response

Body = TypeVar("Body", bound=Model)

#: The wait before the first repetition, in seconds; it doubles with every further one.
FIRST_DELAY = 0.5

#: While another request with its idempotency key is being carried out (a 409 with `Retry-After`), a creation is repeated every
#: second or so, for half a minute after the first such answer: a batch may take 20 seconds.
IN_FLIGHT_PAUSE = 1
IN_FLIGHT_TOTAL = 30

#: The most bytes of a response, decompressed.
MOST_RESPONSE_BYTES = 64 * 1024 * 1024

#: Statuses of a failure that may be over at the next attempt.
TRANSIENT = (500, 502, 503, 504)

#: What keys consist of. httpx would reject another one as if the connection had failed, and quote it.
VISIBLE_ASCII = re.compile(r"[\x21-\x7e]*")


def encode(value: object) -> bytes:
    """JSON without spaces, in UTF-8. A lone surrogate, which UTF-8 lacks, is escaped: the API's error names its field."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")


def fields_of(request: type[Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keyword arguments. As in any call of Python, one of another name is a TypeError: it would be sent, and ignored."""
    for name in given:
        if name not in request.__annotations__:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    return given


def body_of(response: Response, model: type[Body]) -> Body:
    """The JSON of a successful response. At a wrong address something else may have answered."""
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        raise _not_of_the_api(response, "is not the expected JSON") from error


def image_of(response: Response) -> bytes:
    """The image of a successful response."""
    if not response.headers.get("content-type", "").startswith("image/"):
        raise _not_of_the_api(response, "is not an image")
    return response.content


def _not_of_the_api(response: Response, problem: str) -> SignpostError:
    return SignpostError(f"The response {problem} (HTTP {response.status}): is the address that of the API?")


def _is_url(text: str) -> bool:
    """Whether httpx can parse it: its error for another one is none of this package."""
    try:
        return httpx.URL(text).host != ""
    except (httpx.InvalidURL, UnicodeError):
        return False


class Transport:
    """Sends requests to one service with one key."""

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        *,
        timeout: float,
        max_retries: int,
        max_retry_delay: float,
        http_client: httpx.Client | None,
    ) -> None:
        api_key = api_key or os.environ.get("SIGNPOST_API_KEY")
        base_url = base_url or os.environ.get("SIGNPOST_BASE_URL")
        if not api_key:
            raise SignpostError("An API key is required: pass `api_key`, or set SIGNPOST_API_KEY.")
        if not base_url:
            raise SignpostError("An address is required: pass `base_url`, or set SIGNPOST_BASE_URL.")
        if not VISIBLE_ASCII.fullmatch(api_key):
            raise SignpostError("The API key must consist of visible ASCII characters.")
        # Credentials would replace the key, and appear in errors.
        if not re.match(r"https?://[^/?#@]+(?:[/?#]|$)", base_url, re.IGNORECASE) or not _is_url(base_url):
            raise SignpostError("The address must be an http or https URL, without user name and password.")
        self._base = base_url.rstrip("/") + "/api/v1"
        self._headers = {"authorization": f"Bearer {api_key}"}
        if not timeout > 0:
            raise SignpostError("`timeout` must be more than 0; `math.inf` allows any time.")
        self._timeout = None if math.isinf(timeout) else timeout
        self._max_retries = max_retries
        self._max_retry_delay = max_retry_delay
        self._http = httpx.Client() if http_client is None else http_client
        self._is_own = http_client is None

    def close(self) -> None:
        """Closes all connections, unless they are those of the caller's client."""
        if self._is_own:
            self._http.close()

    def read(self, model: type[Body], method: str, path: Sequence[str], **request: Any) -> Body:
        """The JSON of a successful response: see `send`."""
        return body_of(self.send(method, path, **request), model)

    def send(
        self,
        method: str,
        path: Sequence[str],
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        deadline: float = math.inf,
    ) -> Response:
        """Returns a successful response, or raises an error when all retries are used up.

        `path` has the segments below `/api/v1`, not encoded. A DELETE returns a 404, too, if an earlier attempt may have
        been carried out. Raises TimeoutError if there is no response until `deadline`, a time of `time.monotonic`, by
        which each step of an attempt is limited, and the body as a whole; it does so earlier if the next attempt would be
        too late.
        """
        headers = dict(self._headers)
        content = None
        if body is not None:
            content = encode(body)
            headers["content-type"] = "application/json"
        if idempotency_key is not None:
            if not idempotency_key:
                raise SignpostError("The idempotency key must not be empty.")
            if not VISIBLE_ASCII.fullmatch(idempotency_key):
                raise SignpostError("The idempotency key must consist of visible ASCII characters.")
            headers["idempotency-key"] = idempotency_key
        params = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            url = "/".join([self._base, *(quote(segment, safe="") for segment in path)])
            request = self._http.build_request(method, url, params=params, content=content, headers=headers)
        except UnicodeEncodeError as error:
            raise SignpostError("An id or filter with half of a surrogate pair can't be sent.") from error

        retries = 0
        # Whether an attempt ended without a definite answer: it may have been carried out.
        is_unknown = False
        # Until when a creation in flight is awaited.
        in_flight_until: float | None = None
        while True:
            failure: ApiError | ConnectionError
            try:
                response = self._attempt(request, deadline)
                is_success = 200 <= response.status <= 299
                if is_success or (is_unknown and method == "DELETE" and response.status == 404):
                    return response
                failure = error_of(response)
            except httpx.RequestError as error:
                failure = ConnectionError(f"{error}: {method} {url}")
                failure.__cause__ = error
            if not isinstance(failure, ApiError) or failure.status >= 500:
                is_unknown = True
            failure.idempotency_key = idempotency_key
            delay: float | None
            stated = failure.retry_after if isinstance(failure, ConflictError) else None
            if stated is not None and idempotency_key is not None and self._max_retries > 0:
                in_flight_until = in_flight_until or time.monotonic() + IN_FLIGHT_TOTAL
                delay = max(IN_FLIGHT_PAUSE, stated) + random.uniform(0, FIRST_DELAY)
                if time.monotonic() + delay > in_flight_until:
                    raise failure
            else:
                delay = self._delay_after(failure, retries)
                retries += 1
            if time.monotonic() + (delay or 0) >= deadline:
                raise TimeoutError("There was no response in time.") from failure
            if delay is None:
                raise failure
            time.sleep(delay)

    def _attempt(self, request: httpx.Request, deadline: float) -> Response:
        """Sends a request once. The limits of httpx are per operation: a body that trickles in would never exceed one."""
        start = time.monotonic()
        left = deadline - start if self._timeout is None else min(self._timeout, deadline - start)
        request.extensions["timeout"] = httpx.Timeout(None if math.isinf(left) else max(left, 0.001)).as_dict()
        # A redirect would send the key elsewhere.
        response = self._http.send(request, follow_redirects=False, stream=True)
        content = bytearray()

        def expect_in_time() -> None:
            if time.monotonic() - start > left:
                raise httpx.ReadTimeout(f"The response was not complete within {left:.3g} s", request=request)

        try:
            expect_in_time()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > MOST_RESPONSE_BYTES:
                    raise SignpostError("The response has more than 64 MiB.")
                expect_in_time()
        finally:
            response.close()
        return Response(response.status_code, response.headers, bytes(content))

    def _delay_after(self, failure: ApiError | ConnectionError, retries: int) -> float | None:
        """The wait before a repetition in seconds; None if there must not be one."""
        if retries >= self._max_retries:
            return None
        back_off = random.uniform(0, min(self._max_retry_delay, FIRST_DELAY * 2.0 ** min(retries, 1_000)))
        if not isinstance(failure, ApiError):
            return back_off
        retry_after = retry_after_seconds(failure.headers)
        # A 429 without Retry-After: the monthly quota is used up.
        too_fast = failure.status == 429 and retry_after is not None
        if not too_fast and failure.status not in TRANSIENT:
            return None
        if retry_after is None:
            return back_off
        # Spread clients that were all told to wait for the same time.
        return retry_after + random.uniform(0, FIRST_DELAY) if retry_after <= self._max_retry_delay else None
