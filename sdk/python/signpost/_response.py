"""Responses as they were received."""

from dataclasses import dataclass

import httpx


@dataclass(frozen=True)
class Response:
    """A response that is complete."""

    status: int
    headers: httpx.Headers
    content: bytes
