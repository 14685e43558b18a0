"""The client."""

from __future__ import annotations

from typing import Any, List

import httpx

from ._batches import Batches
from ._codes import Codes
from ._model import Answer, Model
from ._transport import Transport
from .models import Folder, Tag


class Document(Model):
    """The OpenAPI document. Everything else is kept as it is."""

    openapi: str


class Folders:
    """Folders. A folder is created by naming it on a code."""

    def __init__(self, transport: Transport) -> None:
        self._read = transport.read

    def list(self) -> List[Folder]:
        """All folders, by name."""
        return self._read(Answer[list[Folder]], "GET", ["folders"]).data


class Tags:
    """Tags. A tag is created by naming it on a code."""

    def __init__(self, transport: Transport) -> None:
        self._read = transport.read

    def list(self) -> List[Tag]:
        """All tags, by name."""
        return self._read(Answer[list[Tag]], "GET", ["tags"]).data


class Signpost:
    """A client of the Signpost API. Threads may share one."""

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        timeout: float = 60,
        max_retries: int = 4,
        max_retry_delay: float = 60,
        http_client: httpx.Client | None = None,
    ) -> None:
        """Prepares requests.

        `api_key`: `sk_live_…`; default: the variable `SIGNPOST_API_KEY`. `base_url`: the address of the service, without
        `/api/v1`; default: the variable `SIGNPOST_BASE_URL`. `timeout`: how many seconds each step of an
        attempt may take, such as connecting, and receiving the body as a whole, or `math.inf`; a batch may be answered after 20.
        `max_retries`: how often a request is repeated that failed and may succeed; unless it is 0, a creation that is still
        being carried out is awaited in addition, for up to 30 seconds.
        `max_retry_delay`: the longest wait before a repetition, in seconds; a longer `Retry-After` is an error at once,
        except while a creation that is still being carried out is awaited.
        `http_client`: for example one with a proxy; it stays open when this client is closed.
        """
        self._transport = Transport(
            api_key,
            base_url,
            timeout=timeout,
            max_retries=max_retries,
            max_retry_delay=max_retry_delay,
            http_client=http_client,
        )
        self.codes = Codes(self._transport)
        self.batches = Batches(self._transport)
        self.folders = Folders(self._transport)
        self.tags = Tags(self._transport)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of the service."""
        return self._transport.read(Document, "GET", ["openapi"]).model_dump()

    def close(self) -> None:
        """Closes all connections, unless they are those of an `http_client` that was passed."""
        self._transport.close()

    def __enter__(self) -> Signpost:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
