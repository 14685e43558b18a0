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

from ._errors import ApiError, ConnectionError, SignpostError, error_of, retry_after_seconds
from ._model import Model

Body = TypeVar("Body", bound=Model)

#: The wait before the first repetition, in seconds; it doubles with every further one.
FIRST_DELAY = 0.5

#: Statuses of a failure that may be over at the next attempt.
TRANSIENT = (500, 502, 503, 504)

#: What keys consist of. httpx would reject another one as if the connection had failed, and quote it.
VISIBLE_ASCII = re.compile(r"[\x21-\x7e]*")


def encode(value: object) -> bytes:
    """JSON without spaces, in UTF-8. A lone surrogate, which UTF-8 lacks, is escaped: the API's error names its field."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")


def body_of(response: httpx.Response, model: type[Body]) -> Body:
    """The JSON of a successful response. At a wrong address something else may have answered."""
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        raise _not_of_the_api(response, "is not the expected JSON") from error


def image_of(response: httpx.Response) -> bytes:
    """The image of a successful response."""
    if not response.headers.get("content-type", "").startswith("image/"):
        raise _not_of_the_api(response, "is not an image")
    return response.content


def _not_of_the_api(response: httpx.Response, problem: str) -> SignpostError:
    return SignpostError(f"The response {problem} (HTTP {response.status_code}): is the address that of the API?")


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
        self._http = http_client or httpx.Client()

    def close(self) -> None:
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
    ) -> httpx.Response:
        """Returns a successful response, or raises an error when all retries are used up.

        `path` has the segments below `/api/v1`, not encoded. A DELETE returns a 404, too, if an earlier attempt may have
        been carried out.
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
            request = self._http.build_request(
                method, url, params=params, content=content, headers=headers, timeout=self._timeout
            )
        except UnicodeEncodeError as error:
            raise SignpostError("An id or filter with half of a surrogate pair can't be sent.") from error

        retries = 0
        # Whether an attempt ended without a definite answer: it may have been carried out, or still be running.
        is_unknown = False
        while True:
            failure: ApiError | ConnectionError
            try:
                # A redirect would send the key elsewhere.
                response = self._http.send(request, follow_redirects=False)
                if response.is_success or (is_unknown and method == "DELETE" and response.status_code == 404):
                    return response
                failure = error_of(response)
            except httpx.RequestError as error:
                failure = ConnectionError(f"{error}: {method} {url}")
                failure.__cause__ = error
            if not isinstance(failure, ApiError) or failure.status >= 500:
                is_unknown = True
            delay = self._delay_after(failure, retries, is_unknown and idempotency_key is not None)
            if delay is None:
                raise failure
            time.sleep(delay)
            retries += 1

    def _delay_after(self, failure: ApiError | ConnectionError, retries: int, may_run: bool) -> float | None:
        """The wait before a repetition in seconds; None if there must not be one.

        `may_run`: whether an earlier attempt with an idempotency key may still be running.
        """
        if retries >= self._max_retries:
            return None
        back_off = random.uniform(0, min(self._max_retry_delay, FIRST_DELAY * 2.0 ** min(retries, 1_000)))
        if not isinstance(failure, ApiError):
            return back_off
        retry_after = retry_after_seconds(failure.headers)
        in_flight = failure.status == 409 and may_run
        # A 429 without Retry-After: the monthly quota is used up.
        too_fast = failure.status == 429 and retry_after is not None
        if not in_flight and not too_fast and failure.status not in TRANSIENT:
            return None
        if retry_after is None:
            return back_off
        # Spread clients that were all told to wait for the same time.
        return retry_after + random.uniform(0, FIRST_DELAY) if retry_after <= self._max_retry_delay else None
