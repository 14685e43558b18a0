"""Every operation and typed errors against the Signpost named by SIGNPOST_BASE_URL; test/sdk/python.test.ts runs it."""

import copy
import gzip
import json
import math
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

import httpx
import signpost
from signpost import Signpost
from signpost.models import Code

TARGET = "https://example.com/menu"

#: A response to a creation.
CODE: dict[str, object] = {
    "data": {
        "id": "qr_1", "type": "dynamic", "short_code": "a", "scan_url": "https://a/r/a", "name": None, "paused": False,
        "folder": None, "tags": [], "scan_count": 0, "campaign_type": None, "domain_id": None,
        "design": {"foregroundColor": "#000", "backgroundColor": "#fff"}, "version": 1,
        "created_at": "2026-11-20T09:30:00.000Z", "updated_at": "2026-11-20T09:30:00.000Z",
    }
}  # fmt: skip


def main() -> None:
    with Signpost() as client:
        round_trip(client)
        errors(client)
    # Of an account with a limit of three codes.
    with Signpost(os.environ["LIMITED_API_KEY"]) as client:
        refused_import(client)
    lasting_refusal()
    deletion()
    conflicts()
    error_keys()
    unknown_names()
    copies()
    large_responses()
    slow_responses()
    closing()
    waits()
    long_waits()
    timeouts()
    keys()
    addresses()
    growing_lists()
    splitting()
    new_values()


def round_trip(client: Signpost) -> None:
    created = client.codes.create(target_url=TARGET, name="Tür", folder="Berlin", tags=["a", ""])
    assert created.folder is not None and created.folder.name == "Berlin"
    assert len(created.warnings) == 1
    assert created.design.foreground_color == "#000000"
    assert created.created_at.utcoffset() is not None
    assert client.codes.get(created.id).short_code == created.short_code
    changed = client.codes.update(created.id, folder=None, paused=True)
    assert (changed.name, changed.folder, changed.paused, changed.tags) == ("Tür", None, True, ["a"])
    assert client.codes.analytics(created.id, period=7).period == 7
    assert client.codes.image(created.id, size=200)[1:4] == b"PNG"
    assert client.codes.image(created.id, format="svg").startswith(b"<svg")

    rows: list[signpost.params.BatchRowInput] = [
        {"target_url": f"{TARGET}/{index}", "external_ref": str(index)} for index in range(7)
    ]

    def create_all() -> list[str]:
        made = client.batches.create_all(rows, name="Import", rows_per_batch=3, idempotency_key="import-1")
        return [batch.id for batch in made]

    batches = create_all()
    assert len(batches) == 3 and create_all() == batches
    assert client.batches.wait(batches[0], timeout=60).counts.created == 3
    assert [batch.id for batch in client.batches.list(limit=2)] == batches[::-1]
    assert [row.external_ref for row in client.batches.rows(batches[0], limit=2)] == ["0", "1", "2"]

    assert len({code.id for code in client.codes.list(limit=3)}) == 8
    assert client.codes.list(tag=["a", "b"], folder="none").page().total == 1
    assert client.codes.delete(created.id).deleted
    assert [folder.name for folder in client.folders.list()] == ["Berlin"]
    assert [tag.code_count for tag in client.tags.list()] == [0]
    assert client.openapi()["openapi"] == "3.1.0"


def refused_import(client: Signpost) -> None:
    """An import that is refused continues where it was, as soon as there is room."""
    rows: list[signpost.params.BatchRowInput] = [
        {"target_url": TARGET, "external_ref": str(index)} for index in range(7)
    ]
    made: list[str] = []
    for batches in (1, 2, 3):
        before, made = made, []
        try:
            for batch in client.batches.create_all(
                rows, name="Refused", rows_per_batch=3, idempotency_key="refused"
            ):
                made.append(batch.id)
            assert batches == 3
        except signpost.PermissionDeniedError as error:
            assert (error.code, error.limit, error.used) == ("qr_limit_reached", 3, 3)
            assert error.headers["idempotent-replay"] == "false"
        assert len(made) == batches and made[:-1] == before
        client.batches.wait(made[-1], timeout=60)
        created = list(client.batches.rows(made[-1]))
        assert [row.external_ref for row in created] == [str(index) for index in range(7)][3 * batches - 3 : 3 * batches]
        for row in created:
            assert row.id is not None
            client.codes.delete(row.id)
    assert [batch.id for batch in client.batches.list()] == made[::-1]


def lasting_refusal() -> None:
    """A refusal that is replayed for each of its keys is an error."""
    keys = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        return httpx.Response(403, json={"error": "No."}, headers={"idempotent-replay": "true"})

    client = Signpost("sk_live_x", "http://a", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    try:
        next(client.batches.create_all([{"target_url": TARGET}], idempotency_key="k"))
        raise AssertionError("it was not refused")
    except signpost.PermissionDeniedError:
        assert keys == ["k/1", *(f"k/1.{refusals}" for refusals in range(1, 21))]


def errors(client: Signpost) -> None:
    try:
        client.codes.create(target_url="ftp://example.com")
        raise AssertionError("an invalid target was accepted")
    except signpost.BadRequestError as error:
        assert (error.status, error.field) == (400, "target_url")
        assert error.request_id
    try:
        client.codes.create(target_url=TARGET, name="\ud800")
        raise AssertionError("a lone surrogate was accepted")
    except signpost.BadRequestError as error:
        assert error.field == "name"
    for unsendable in (lambda: client.codes.get("qr_\ud800"), lambda: client.codes.list(tag=["\ud800"]).page()):
        try:
            unsendable()
            raise AssertionError("a lone surrogate was sent in a URL")
        except signpost.SignpostError as error:
            assert "surrogate" in str(error)
    try:
        client.codes.get("qr_unknown")
        raise AssertionError("an unknown code was found")
    except signpost.NotFoundError as error:
        assert str(error)
    try:
        Signpost("sk_live_wrong").tags.list()
        raise AssertionError("a wrong key was accepted")
    except signpost.AuthenticationError as error:
        assert error.status == 401
    try:
        Signpost("sk_live_secret", "http://127.0.0.1:1", max_retries=1).tags.list()
        raise AssertionError("nobody listens there")
    except signpost.ConnectionError as error:
        assert "secret" not in repr(error)
    # The monthly quota is used up: no Retry-After, and no retry.
    requests = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(429, json={"error": "No."})

    mocked = Signpost("sk_live_x", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    try:
        mocked.tags.list()
        raise AssertionError("the quota was ignored")
    except signpost.RateLimitError as error:
        assert error.retry_after is None and len(requests) == 1


def deletion() -> None:
    def delete(*statuses: int) -> signpost.models.DeletedCode:
        left = list(statuses)

        def answer(_: httpx.Request) -> httpx.Response:
            return httpx.Response(left.pop(0), headers={"retry-after": "0"})

        http_client = httpx.Client(transport=httpx.MockTransport(answer))
        return Signpost("sk_live_x", "http://a", http_client=http_client).codes.delete("qr_x")

    # An attempt with a 5xx may have deleted the code.
    assert delete(500, 429, 404).model_dump() == {"id": "qr_x", "deleted": True}
    for statuses in ((404,), (429, 404)):
        try:
            delete(*statuses)
            raise AssertionError("an unknown code was deleted")
        except signpost.NotFoundError:
            pass


def conflicts() -> None:
    """A creation in flight (409 with `Retry-After`) is awaited; another 409 is definite. The error has the key."""

    def create(
        answers: list[tuple[int, str | None]], max_retries: int = 4
    ) -> tuple[list[float], signpost.ConflictError | None]:
        at: list[float] = []
        keys = set()

        def answer(request: httpx.Request) -> httpx.Response:
            status, retry_after = answers[len(at)]
            at.append(time.monotonic())
            keys.add(request.headers["idempotency-key"])
            headers = {} if retry_after is None else {"retry-after": retry_after}
            return httpx.Response(status, json=CODE if status == 201 else {"error": "No."}, headers=headers)

        http_client = httpx.Client(transport=httpx.MockTransport(answer))
        client = Signpost("sk_live_x", "http://a", http_client=http_client, max_retries=max_retries)
        try:
            client.codes.create(target_url=TARGET)
        except signpost.ConflictError as error:
            assert keys == {error.idempotency_key}
            return at, error
        assert len(keys) == 1
        return at, None

    # Beyond the retries, and at most once a second.
    at, conflict = create([(503, "0"), (409, "0"), (409, "1"), (409, "0"), (201, None)], max_retries=1)
    assert conflict is None and len(at) == 5
    assert all(at[index] - at[index - 1] >= 0.995 for index in (2, 3, 4)), at
    for answers, max_retries, attempts, retry_after in (
        # For more than 30 seconds.
        ([(409, "16"), (409, "16"), (201, None)], 4, 2, 16),
        ([(409, "1"), (201, None)], 0, 1, 1),
        ([(503, "0"), (409, None), (201, None)], 4, 2, None),
        ([(429, "0"), (409, None), (201, None)], 4, 2, None),
    ):
        at, conflict = create(answers, max_retries)
        assert conflict is not None and (len(at), conflict.retry_after) == (attempts, retry_after), answers


def error_keys() -> None:
    """The error of a creation whose connection failed has the key with which the call can be repeated."""
    keys = []

    def fail(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        raise httpx.ConnectError("No.")

    http_client = httpx.Client(transport=httpx.MockTransport(fail))
    client = Signpost("sk_live_x", "http://a", http_client=http_client, max_retries=0)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: client.batches.create(rows=[{"target_url": TARGET}]), ""),
        (lambda: next(client.batches.create_all([{"target_url": TARGET}])), "/1"),
    ]
    for create, suffix in calls:
        try:
            create()
            raise AssertionError("nothing answered")
        except signpost.ConnectionError as error:
            assert keys.pop() == f"{error.idempotency_key}{suffix}"


def unknown_names() -> None:
    """A misspelt argument is a TypeError: it would be sent, and ignored."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise AssertionError("it was sent")

    client = Signpost("sk_live_x", "http://a", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    misspelt: Any = {"idempotencyKey": "x"}
    for call in (
        lambda: client.codes.create(target_url=TARGET, **misspelt),
        lambda: client.codes.update("qr_x", **misspelt),
        lambda: client.batches.create(rows=[{"target_url": TARGET}], **misspelt),
    ):
        try:
            call()
            raise AssertionError("it was accepted")
        except TypeError as error:
            assert "'idempotencyKey'" in str(error)


def copies() -> None:
    """Errors can be copied, and sent to another process."""
    errors: list[signpost.SignpostError] = [signpost.SignpostError("No.")]
    for status in (0, 302, 400, 401, 403, 404, 409, 413, 429, 500):

        def answer(_: httpx.Request) -> httpx.Response:
            if status == 0:
                raise httpx.ConnectError("No.")
            body = {"error": "name: no.", "code": "qr_limit_reached", "limit": 1, "used": 1}
            return httpx.Response(status, json=body, headers={"x-request-id": "r-1", "retry-after": "99"})

        http_client = httpx.Client(transport=httpx.MockTransport(answer))
        try:
            Signpost("sk_live_x", "http://a", http_client=http_client, max_retries=0).codes.create(target_url=TARGET)
        except signpost.SignpostError as error:
            errors.append(error)
    assert len({type(error) for error in errors}) == 11
    for each in errors:
        for copied in (copy.copy(each), copy.deepcopy(each), pickle.loads(pickle.dumps(each))):
            assert type(copied) is type(each) and str(copied) == str(each) and vars(copied) == vars(each), each


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A server that answers GET; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                answer(self)
            except OSError:
                # The client has closed the connection.
                pass

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def large_responses() -> None:
    most = 64 * 1024 * 1024
    for encoding in ("identity", "gzip"):
        for size in (most, most + 1):

            def answer(handler: BaseHTTPRequestHandler) -> None:
                content = b" " * size
                handler.send_response(200)
                handler.send_header("content-type", "image/png")
                handler.send_header("content-encoding", encoding)
                handler.end_headers()
                handler.wfile.write(gzip.compress(content, 1) if encoding == "gzip" else content)

            with serving(answer) as address, Signpost("sk_live_x", address) as client:
                try:
                    length = len(client.codes.image("qr_x"))
                    assert size == length == most
                except signpost.SignpostError as error:
                    assert size > most and "more than 64 MiB" in str(error), error


def slow_responses() -> None:
    """A response that trickles in does not take longer than the timeout, and `wait` not longer than its own."""

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(50):
            handler.wfile.write(b" ")
            time.sleep(0.1)

    with serving(trickle) as address:
        start = time.monotonic()
        try:
            Signpost("sk_live_x", address, timeout=0.5, max_retries=0).tags.list()
            raise AssertionError("it was complete")
        except signpost.ConnectionError as error:
            assert "not complete within 0.5 s" in str(error)
        assert time.monotonic() - start < 2

    def silent(_: BaseHTTPRequestHandler) -> None:
        time.sleep(8)

    def unavailable(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(503)
        handler.send_header("retry-after", "2")
        handler.end_headers()

    for answer in (silent, trickle, unavailable):
        with serving(answer) as address:
            start = time.monotonic()
            try:
                Signpost("sk_live_x", address).batches.wait("batch_1", timeout=1.5)
                raise AssertionError("it was completed")
            except TimeoutError as late:
                assert "batch_1 is not completed after 1.5 s" in str(late)
            assert time.monotonic() - start < 4


def closing() -> None:
    """A client closes the connections that are its own."""
    http_client = httpx.Client()
    with Signpost("sk_live_x", "http://a", http_client=http_client):
        pass
    assert not http_client.is_closed
    client = Signpost("sk_live_x", "http://a")
    client.close()
    try:
        client.tags.list()
        raise AssertionError("it is open")
    except RuntimeError as error:
        assert "closed" in str(error)


def long_waits() -> None:
    """No number or date is too large for a wait."""
    for retry_after, expected in (
        ("9" * 5_000, 24 * 86_400),
        ("0" * 5_000 + "7", 7),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 24 * 86_400),
        ("Fri, 31 Dec 99999999999 23:59:59 GMT", None),
    ):
        response = httpx.Response(429, headers={"retry-after": retry_after})
        http_client = httpx.Client(transport=httpx.MockTransport(lambda _: response))
        options: Any = {"http_client": http_client, "max_retries": 0, "max_retry_delay": math.inf}
        try:
            Signpost("sk_live_x", "http://a", **options).tags.list()
            raise AssertionError("it succeeded")
        except signpost.RateLimitError as error:
            assert error.retry_after == expected


def waits() -> None:
    """A repetition waits as long as `Retry-After` says, in seconds or as a date."""
    for status, retry_after, expected in (
        (429, "61", 1),
        (429, "Wed, 21 Oct 2015 07:28:00 GMT", 3),
        (503, "Fri, 31 Dec 9999 23:59:59 GMT", 1),
        (429, "1.5", 1),
        (429, "no date GMT", 1),
        (302, "", 1),
    ):
        requests = []

        def answer(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            return httpx.Response(status, headers={"retry-after": retry_after, "location": "https://example.com/"})

        http_client = httpx.Client(transport=httpx.MockTransport(answer))
        try:
            Signpost("sk_live_x", "http://a", http_client=http_client, max_retries=2).tags.list()
        except signpost.ApiError as error:
            assert len(requests) == expected, retry_after
            assert ("a redirect to https://example.com/" in str(error)) == (status == 302)


def timeouts() -> None:
    """A timeout may be endless, and a batch is looked at until the time is over."""
    sent: list[Any] = []
    batch: dict[str, object] = {
        "id": "batch_1", "name": None, "domain_id": None, "rows": [], "completed_at": None,
        "counts": {"total": 1, "pending": 1, "created": 0, "failed": 0, "skipped": 0},
        "design": {"foregroundColor": "#000", "backgroundColor": "#fff"}, "created_at": "2026-11-20T09:30:00.000Z",
    }  # fmt: skip

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.extensions["timeout"]["read"])
        # Looked at after 0, 0.5, 1.5 and 3 seconds.
        return httpx.Response(200, json={"data": {**batch, "status": "completed" if len(sent) >= 4 else "processing"}})

    http_client = httpx.Client(transport=httpx.MockTransport(answer))
    client = Signpost("sk_live_x", "http://a", timeout=math.inf, http_client=http_client)
    assert client.batches.wait("batch_1", timeout=3).status == "completed"
    # Each look has what is left, the last one a second.
    assert 2 < sent[1] < sent[0] <= 3 and 0.5 < sent[-1] <= 1
    assert client.batches.get("batch_1") and sent[-1] is None
    for timeout in (0, -1, math.nan):
        try:
            Signpost("sk_live_x", "http://a", timeout=timeout)
            raise AssertionError(f"{timeout} was accepted")
        except signpost.SignpostError as error:
            assert "`timeout`" in str(error)

    # A service that asks for a longer pause is asked again when the time is over.
    now = 0.0
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def refuse_first(_: httpx.Request) -> httpx.Response:
        looks.append(now)
        if len(looks) == 1:
            return httpx.Response(429, headers={"retry-after": "45"})
        return httpx.Response(200, json={"data": {**batch, "status": "completed"}})

    client = Signpost("sk_live_x", "http://a", http_client=httpx.Client(transport=httpx.MockTransport(refuse_first)))
    with mock.patch.multiple(time, monotonic=lambda: now, sleep=sleep):
        assert client.batches.wait("batch_1", timeout=30).status == "completed"
    assert looks == [0, 30]

    # Many retries without long waits.
    failures = 0

    def fail(_: httpx.Request) -> httpx.Response:
        nonlocal failures
        failures += 1
        return httpx.Response(503)

    http_client = httpx.Client(transport=httpx.MockTransport(fail))
    try:
        Signpost("sk_live_x", "http://a", max_retries=1_100, max_retry_delay=0, http_client=http_client).tags.list()
    except signpost.ServerError:
        assert failures == 1_101


def keys() -> None:
    """What cannot be sent is an error at once, which does not quote the key, and not one of the connection."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise AssertionError("it was sent")

    client = Signpost("sk_live_x", "http://a", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    for attempt in (
        lambda: Signpost("sk_live_secret\n", "http://a"),
        lambda: client.codes.create(target_url=TARGET, idempotency_key="2026\n11"),
    ):
        try:
            attempt()
            raise AssertionError("an invalid key was accepted")
        except signpost.SignpostError as error:
            assert "visible ASCII" in str(error) and "secret" not in str(error)

    # Another key in place of an empty one would let a repetition after a crash create twice.
    for create in (
        lambda: client.codes.create(target_url=TARGET, idempotency_key=""),
        lambda: next(client.batches.create_all([{"target_url": TARGET}], idempotency_key="")),
    ):
        try:
            create()
            raise AssertionError("an empty key was accepted")
        except signpost.SignpostError as error:
            assert "must not be empty" in str(error)


def addresses() -> None:
    """A wrong address is an error at once, or when something else than the API answers."""
    for address in (
        "localhost:8080", "signpost.example.com", "ftp://signpost.example.com", "https://",
        "https://user:secret@signpost.example.com", "http://[::1", "http://signpost.example.com\n", "http://xn--",
    ):  # fmt: skip
        try:
            Signpost("sk_live_x", address)
            raise AssertionError(f"{address} was accepted")
        except signpost.SignpostError as error:
            assert "an http or https URL" in str(error)

    for body in (
        "<!doctype html>", "", "null", '{"status":"ok"}', '{"data":null}', '{"data":"ok"}', '{"data":["ok"]}', '{"data":{}}',
    ):  # fmt: skip

        def answer(_: httpx.Request) -> httpx.Response:
            return httpx.Response(200, text=body)

        client = Signpost("sk_live_x", "http://a", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
        for call in (
            client.tags.list,
            lambda: client.codes.create(target_url=TARGET),
            lambda: client.codes.get("qr_x"),
            lambda: client.codes.list().page(),
            lambda: client.codes.delete("qr_x"),
            lambda: client.batches.get("batch_x"),
            lambda: client.batches.rows("batch_x").page(),
            lambda: client.codes.image("qr_x"),
            lambda: client.batches.list().page(),
            client.openapi,
        ):
            try:
                call()
                raise AssertionError(f"{body} was accepted")
            except signpost.SignpostError as error:
                assert "is the address that of the API?" in str(error)


def growing_lists() -> None:
    """No batch is listed twice, however many are created meanwhile."""
    ids = ["batch_3", "batch_2", "batch_1"]

    def answer(request: httpx.Request) -> httpx.Response:
        offset = int(request.url.params["offset"])
        data = [
            {
                "id": id, "name": None, "status": "completed", "domain_id": None,
                "counts": {"total": 1, "pending": 0, "created": 1, "failed": 0, "skipped": 0},
                "design": {"foregroundColor": "#000", "backgroundColor": "#fff"},
                "created_at": "2026-11-20T09:30:00.000Z", "completed_at": "2026-11-20T09:30:00.000Z",
            }
            for id in ids[offset : offset + 2]
        ]  # fmt: skip
        # After the first page, more than a page of them.
        if offset == 0:
            ids[:0] = ["batch_7", "batch_6", "batch_5", "batch_4"]
        return httpx.Response(
            200, json={"data": data, "pagination": {"limit": 2, "offset": offset}, "total": len(ids)}
        )

    client = Signpost("sk_live_x", "http://a", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    assert [batch.id for batch in client.batches.list()] == ["batch_3", "batch_2", "batch_1"]


def splitting() -> None:
    """Any `rows_per_batch` below 1 stands for the limit of the API. A batch has as many rows as fit into 3,500,000 bytes."""
    sizes = []
    sent = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal sent
        sent = len(request.content)
        sizes.append(len(json.loads(request.content)["rows"]))
        return httpx.Response(400, json={"error": "No."})

    client = Signpost("sk_live_x", "http://a", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    rows: list[signpost.params.BatchRowInput] = [{"target_url": TARGET}] * 25_001
    for rows_per_batch in (0, -1):
        try:
            next(client.batches.create_all(rows, rows_per_batch=rows_per_batch))
        except signpost.BadRequestError:
            pass
    assert sizes == [25_000, 25_000]
    long: signpost.params.BatchRowInput = {"target_url": TARGET, "name": "ü" * 200}
    try:
        next(client.batches.create_all([long] * 25_000))
    except signpost.BadRequestError:
        pass
    assert sent <= 3_500_000 < sent / sizes[-1] * (sizes[-1] + 1)


def new_values() -> None:
    """A later version of the API may have further types and fields."""
    code: dict[str, object] = {
        "id": "qr_1", "type": "wallet", "short_code": "a", "scan_url": "https://a/r/a", "name": None, "paused": False,
        "folder": None, "tags": [], "scan_count": 0, "campaign_type": None, "domain_id": None,
        "design": {"foregroundColor": "#000", "backgroundColor": "#fff"}, "version": 1,
        "created_at": "2026-11-20T09:30:00.000Z", "updated_at": "2026-11-20T09:30:00.000Z", "more": 1,
    }  # fmt: skip
    read = Code.model_validate(code)
    assert read.model_dump()["type"] == "wallet" and read.model_extra == {"more": 1}


main()
