"""Batches: many codes in one request."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from typing_extensions import Unpack

from ._errors import ApiError, SignpostError
from ._listing import Listing, Page
from ._model import Answer, PageAnswer
from ._transport import Transport, encode, fields_of
from .models import Batch, BatchRow, BatchWithRows, Pagination
from .params import BatchRowInput, CreateBatchRequest, DesignInput

#: The limits of one batch.
MOST_ROWS = 25_000
MOST_BYTES = 3_500_000

#: The waits between two looks at a batch that is not completed, in seconds: they double.
FIRST_WAIT = 0.5
LONGEST_WAIT = 10

#: How long the last look may take.
LAST_LOOK = 1

#: How often a rejected part is sent again with another key: enough for a job that repeats it every 90 minutes for a day.
#: Each time it is sent with all the keys before.
MOST_REJECTIONS = 20


class CreatedBatch(Batch):
    """A new batch."""

    warnings: list[str] = []
    """
    Sentences about colours that scanners may be unable to read.
    """


class Batches:
    """Batches: many codes in one request."""

    def __init__(self, transport: Transport) -> None:
        self._read = transport.read

    def list(self, *, limit: int | None = None, offset: int = 0) -> Listing[Batch]:
        """The batches of the account, newest first, without their rows. `limit`: the page size, 1 to 100."""

        def page(offset: int, before: str | None) -> Page[Batch]:
            query = {"limit": limit, "offset": offset}
            body = self._read(PageAnswer[list[Batch], Pagination], "GET", ["batches"], query=query)
            # Batches that were created meanwhile have moved earlier ones, whose ids are greater, onto this page.
            items = [each for each in body.data if before is None or each.id < before]
            reached = body.pagination.offset + len(body.data)
            more = len(body.data) > 0 and reached < body.total
            # A page of which every batch was read before does not begin the list again.
            last = items[-1].id if items else before
            return Page(
                items=items,
                total=body.total,
                limit=body.pagination.limit,
                next=(lambda: page(reached, last)) if more else None,
            )

        return Listing(lambda: page(offset, None))

    def create(self, *, idempotency_key: str | None = None, **batch: Unpack[CreateBatchRequest]) -> CreatedBatch:
        """Creates one batch: at most 25,000 rows and 3,500,000 bytes. It may still be processing: see `wait`."""
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        fields = fields_of(CreateBatchRequest, batch)
        body = self._read(Answer[CreatedBatch], "POST", ["batches"], body=fields, idempotency_key=key)
        return body.data.model_copy(update={"warnings": body.warnings})

    def create_all(
        self,
        rows: Iterable[BatchRowInput],
        *,
        name: str | None = None,
        domain_id: str | None = None,
        design: DesignInput | None = None,
        rows_per_batch: int = MOST_ROWS,
        idempotency_key: str | None = None,
    ) -> Iterator[CreatedBatch]:
        """Creates as many batches as the rows need, one after another, and yields each.

        If one fails, or is rejected, for example because the account has as many codes as its plan allows, the same call
        within 24 hours of the first continues after the batches that exist already: with the same rows in the same order,
        the same fields, the same `rows_per_batch`, and the same `idempotency_key` of at most 200 characters. To change any
        of these, pass the rows that are in no batch yet, with a new key. Rows that were skipped stay skipped: pass them
        with a new key, too.

        A plan may allow fewer `rows_per_batch` than the API, whose limit 0 and less stand for.
        """
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        if not key:
            raise SignpostError("The idempotency key must not be empty.")
        given = {"name": name, "domain_id": domain_id, "design": design}
        fields: Any = {field: value for field, value in given.items() if value is not None}
        most = min(rows_per_batch, MOST_ROWS) if rows_per_batch > 0 else MOST_ROWS
        for part, some in enumerate(_split(rows, fields, most), start=1):
            try:
                created = self._create_part(f"{key}/{part}", rows=some, **fields)
            except SignpostError as error:
                # The caller repeats the call, and not the part.
                error.idempotency_key = key
                raise
            yield created

    def _create_part(self, key: str, **batch: Unpack[CreateBatchRequest]) -> CreatedBatch:
        """Creates a batch.

        A rejection is stored with its key, so one that is replayed may no longer hold; it has created nothing. The batch is
        sent again with the key `key.1`, `key.2`, and so on: every run reaches the same first one that is not rejected.
        """
        rejections = 0
        while True:
            try:
                return self.create(idempotency_key=f"{key}.{rejections}" if rejections > 0 else key, **batch)
            except ApiError as error:
                if rejections == MOST_REJECTIONS or error.headers.get("idempotent-replay") != "true":
                    raise
            rejections += 1

    def get(self, id: str) -> Batch:
        return self._get(id, math.inf)

    def _get(self, id: str, deadline: float) -> Batch:
        batch = self._read(Answer[Batch], "GET", ["batches", id], query={"limit": 1}, deadline=deadline).data
        (batch.model_extra or {}).pop("rows", None)
        return batch

    def rows(
        self,
        id: str,
        *,
        status: Literal["pending", "created", "failed", "skipped"] | None = None,
        limit: int = 1_000,
        offset: int = 0,
    ) -> Listing[BatchRow]:
        """The rows of a batch in the order sent. `limit`: the page size, 1 to 1,000.

        Call `wait` before you list those of one `status`: rows that change theirs between two pages make later ones move up,
        and be left out.
        """

        def page(offset: int) -> Page[BatchRow]:
            query = {"limit": limit, "offset": offset, "status": status}
            body = self._read(PageAnswer[BatchWithRows, Pagination], "GET", ["batches", id], query=query)
            rows = body.data.rows
            reached = body.pagination.offset + len(rows)
            more = len(rows) > 0 and reached < body.total
            following = (lambda: page(reached)) if more else None
            return Page(items=rows, total=body.total, limit=body.pagination.limit, next=following)

        return Listing(lambda: page(offset))

    def wait(self, id: str, *, timeout: float | None = None) -> Batch:
        """Returns when every row is created, failed or skipped.

        Raises TimeoutError after `timeout` seconds, or up to a second later, since the batch is read once more at the end. They
        limit each step of a request, such as connecting, and the body of its response as a whole.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        delay: float = FIRST_WAIT
        while True:
            unanswered: TimeoutError | None = None
            try:
                batch = self._get(id, max(deadline, time.monotonic() + LAST_LOOK))
                if batch.status == "completed":
                    return batch
            except TimeoutError as error:
                unanswered = error
                # A further attempt would be too late.
                delay = math.inf
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{id} is not completed after {timeout} s.") from unanswered
            # The last look is at the end.
            time.sleep(min(delay, left))
            delay = min(2 * delay, LONGEST_WAIT)


def _split(rows: Iterable[BatchRowInput], fields: Any, most_rows: int) -> Iterator[list[BatchRowInput]]:
    """Splits rows so that each part fits in one batch. A row that does not fit alone is a part of its own."""
    empty = len(encode({**fields, "rows": []}))
    part: list[BatchRowInput] = []
    size = empty
    for row in rows:
        # With its comma.
        added = len(encode(row)) + 1
        if part and (len(part) + 1 > most_rows or size + added > MOST_BYTES):
            yield part
            part, size = [], empty
        part.append(row)
        size += added
    if part:
        yield part
