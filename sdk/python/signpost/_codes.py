"""QR codes."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Literal

from typing_extensions import Unpack

from ._listing import Listing, Page
from ._model import Answer, PageAnswer
from ._transport import Transport, body_of, fields_of, image_of
from .models import Analytics, Code, CursorPagination, DeletedCode
from .params import CreateCodeRequest, UpdateCodeRequest


class CreatedCode(Code):
    """A new code."""

    warnings: list[str] = []
    """
    One sentence for each reason why a label could not be applied.
    """


class Codes:
    """QR codes."""

    def __init__(self, transport: Transport) -> None:
        self._send = transport.send
        self._read = transport.read

    def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        folder: str | None = None,
        tag: str | Sequence[str] | None = None,
    ) -> Listing[Code]:
        """The codes of the account, newest first.

        `limit` is the page size, 1 to 100. `folder` is an id or a name; `none`: only codes without a folder. `tag`: ids
        or names; codes with any of them.
        """

        def page(query: dict[str, Any]) -> Page[Code]:
            body = self._read(PageAnswer[list[Code], CursorPagination], "GET", ["qr-codes"], query=query)
            following = body.pagination.next_cursor
            return Page(
                items=body.data,
                total=body.total,
                limit=body.pagination.limit,
                next=None if following is None else lambda: page({**query, "cursor": following}),
            )

        query = {"limit": limit, "offset": offset, "cursor": cursor, "folder": folder, "tag": tag}
        return Listing(lambda: page(query))

    def create(self, *, idempotency_key: str | None = None, **code: Unpack[CreateCodeRequest]) -> CreatedCode:
        """Creates a dynamic code.

        Whoever repeats this within 24 hours with the same `idempotency_key`, even after a crash, gets the first result.
        Default: a new key, which all retries of this call share.
        """
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        fields = fields_of(CreateCodeRequest, code)
        body = self._read(Answer[CreatedCode], "POST", ["qr-codes"], body=fields, idempotency_key=key)
        return body.data.model_copy(update={"warnings": body.warnings})

    def get(self, id: str) -> Code:
        return self._read(Answer[Code], "GET", ["qr-codes", id]).data

    def update(self, id: str, **changes: Unpack[UpdateCodeRequest]) -> Code:
        """Changes the given fields alone; None clears one. The print stays valid."""
        return self._read(Answer[Code], "PATCH", ["qr-codes", id], body=fields_of(UpdateCodeRequest, changes)).data

    def delete(self, id: str) -> DeletedCode:
        """Scans of a deleted code reach a "no longer active" page."""
        response = self._send("DELETE", ["qr-codes", id])
        # Deleted by an attempt whose response was lost.
        if response.status == 404:
            return DeletedCode(id=id, deleted=True)
        return body_of(response, Answer[DeletedCode]).data

    def analytics(self, id: str, *, period: int | None = None) -> Analytics:
        """The scans of a code. `period`: days of the breakdowns, 1 to 365; default 30."""
        return self._read(Answer[Analytics], "GET", ["qr-codes", id, "analytics"], query={"period": period}).data

    def image(self, id: str, *, format: Literal["png", "svg"] = "png", size: int | None = None) -> bytes:
        """The image of a code: the bytes of a PNG or SVG file. `size`: pixels of a PNG, 128 to 4,096; default 512."""
        return image_of(self._send("GET", ["qr-codes", id, "image"], query={"format": format, "size": size}))
