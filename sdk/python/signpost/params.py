# Generated from the OpenAPI document by `npm run generate:sdk`. Do not edit.

from __future__ import annotations

from typing import TypedDict

from typing_extensions import NotRequired


class CreateCodeRequest(TypedDict):
    target_url: str
    """
    The target of scans: an absolute http or https URL without credentials.
    """
    name: NotRequired[str | None]
    """
    A name of your own; empty becomes null.
    """
    campaign_type: NotRequired[str | None]
    """
    Your own term for the kind of campaign.
    """
    domain_id: NotRequired[str | None]
    """
    A verified custom domain of the account; default: the platform’s.
    """
    folder: NotRequired[str | None]
    """
    Folder id or name; an unknown name is created.
    """
    tags: NotRequired[list[str] | None]
    """
    Tag ids or names; unknown names are created, duplicates count once.
    """


class UpdateCodeRequest(TypedDict):
    target_url: NotRequired[str]
    """
    The target of scans: an absolute http or https URL without credentials.
    """
    name: NotRequired[str | None]
    """
    A name of your own; empty becomes null.
    """
    paused: NotRequired[bool]
    """
    True pauses the code, false resumes it.
    """
    folder: NotRequired[str | None]
    """
    Folder id or name; an unknown name is created. Null removes the code from its folder.
    """
    tags: NotRequired[list[str]]
    """
    Replaces all tags. Tag ids or names; unknown names are created, duplicates count once.
    """


class BatchRowInput(TypedDict):
    """
    A code to create, by the rules of `createCode`.
    """

    target_url: str
    """
    The target of scans: an absolute http or https URL without credentials.
    """
    name: NotRequired[str | None]
    """
    A name of your own; empty becomes null.
    """
    campaign_type: NotRequired[str | None]
    """
    Your own term for the kind of campaign.
    """
    folder: NotRequired[str | None]
    """
    Folder id or name; an unknown name is created.
    """
    tags: NotRequired[list[str] | None]
    """
    Tag ids or names; unknown names are created, duplicates count once.
    """
    external_ref: NotRequired[str | None]
    """
    Your own identifier for the object that carries the code; stored with the row.
    """


class DesignInput(TypedDict):
    """
    Colours of the images.
    """

    foregroundColor: NotRequired[str]
    """
    The modules: `#rgb` or `#rrggbb`; default `#000000`.
    """
    backgroundColor: NotRequired[str]
    """
    The background: `#rgb` or `#rrggbb`; default `#ffffff`.
    """


class CreateBatchRequest(TypedDict):
    rows: list[BatchRowInput]
    """
    In print order.
    """
    name: NotRequired[str]
    """
    A name of your own; empty becomes null.
    """
    domain_id: NotRequired[str]
    """
    A live custom domain of the account that every code is printed on.
    """
    design: NotRequired[DesignInput]
