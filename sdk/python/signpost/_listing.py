"""Lists that are read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Page(Generic[Item]):
    """A page of a list."""

    items: list[Item]
    #: All items that match; of codes, whose pages after the first are read by cursor, from this page onwards.
    total: int
    #: The page size used.
    limit: int
    #: Reads the page after this one; None on the last page.
    next: Callable[[], Page[Item]] | None


class Listing(Generic[Item]):
    """A list that is read page by page while you iterate: `for item in listing`."""

    def __init__(self, first: Callable[[], Page[Item]]) -> None:
        self._first = first

    def page(self) -> Page[Item]:
        """The first page alone."""
        return self._first()

    def __iter__(self) -> Iterator[Item]:
        read: Callable[[], Page[Item]] | None = self._first
        while read:
            page = read()
            yield from page.items
            read = page.next
