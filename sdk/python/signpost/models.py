# Generated from the OpenAPI document by `npm run generate:sdk`. Do not edit.

from __future__ import annotations

from datetime import date as date_aliased
from typing import Literal

from pydantic import AwareDatetime, ConfigDict, Field
from signpost._model import Model


class CodeFolder(Model):
    """
    The folder of a code.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    name: str


class Design(Model):
    """
    Colours of images.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    foreground_color: str = Field(..., alias="foregroundColor")
    """
    The modules: `#rgb` or `#rrggbb`.
    """
    background_color: str = Field(..., alias="backgroundColor")
    """
    The background: `#rgb` or `#rrggbb`.
    """


class CursorPagination(Model):
    """
    Of a page requested by cursor or offset.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    limit: int
    """
    The page size used.
    """
    offset: int | None
    """
    The offset used; null if requested by cursor.
    """
    next_cursor: str | None
    """
    The `cursor` of the next page; null on the last page.
    """


class DeletedCode(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    deleted: Literal[True]


class DayScans(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    date: date_aliased
    unique: int
    """
    Visitors.
    """
    scans: int
    """
    Scans with it.
    """


class CountryScans(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    country: str
    """
    ISO 3166 alpha-2, or `unknown`.
    """
    scans: int
    """
    Scans with it.
    """


class DeviceScans(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    device: str = Field(..., examples=["mobile", "desktop"])
    scans: int
    """
    Scans with it.
    """


class OperatingSystemScans(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    operating_system: str
    scans: int
    """
    Scans with it.
    """


class BrowserScans(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    browser: str
    scans: int
    """
    Scans with it.
    """


class ReferrerScans(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    referrer: str
    """
    A host, or `direct`.
    """
    scans: int
    """
    Scans with it.
    """


class BatchCounts(Model):
    """
    Rows by status.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    total: int
    """
    All rows.
    """
    pending: int
    """
    Rows that wait.
    """
    created: int
    """
    Rows that became codes.
    """
    failed: int
    """
    Invalid rows.
    """
    skipped: int
    """
    Rows beyond the QR code limit.
    """


class Pagination(Model):
    """
    Of a page requested by offset.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    limit: int
    """
    The page size used.
    """
    offset: int
    """
    The offset used.
    """


class BatchRow(Model):
    """
    The result of a row.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    index: int
    """
    Its index in the request, from 0.
    """
    status: Literal["pending", "created", "failed", "skipped"]
    target_url: str | None
    """
    As it was sent, but trimmed if it is longer than 2,048 characters; of a row that failed, cut off after as many.
    """
    name: str | None
    """
    As it was sent; of a row that failed, cut off after 256 characters.
    """
    external_ref: str | None
    """
    As it was sent; of a row that failed, cut off after 256 characters.
    """
    id: str | None
    """
    The code, once created.
    """
    short_code: str | None
    """
    The short code, once created.
    """
    scan_url: str | None
    """
    The scan URL, once created.
    """
    reason: str | None
    """
    Why it failed or was skipped, as a sentence.
    """
    warnings: list[str] | None = None
    """
    Present if the folder or tags of a created row could not be applied: one sentence for each reason.
    """


class Folder(Model):
    """
    A folder; a code is in at most one.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    name: str
    code_count: int
    """
    Codes that are not deleted.
    """


class Tag(Model):
    """
    A tag; a code may have several.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    name: str
    code_count: int
    """
    Codes that are not deleted.
    """


class PolicyWeekly(Model):
    """
    Times that recur every week.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    time_zone: str
    """
    A name of the IANA time zone database: `Europe/Berlin`.
    """
    days: list[str]
    """
    The days on which it begins: `mon` to `sun`.
    """
    from_: str = Field(..., alias="from")
    """
    `HH:MM`, local time.
    """
    until: str
    """
    `HH:MM`, local time; of the next day if it is not later than `from`.
    """


class PolicyVariant(Model):
    """
    One target of a split.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    label: str
    """
    Its name in analytics.
    """
    weight: int
    """
    Its share is this over the sum of all weights.
    """
    target_url: str
    """
    Where its visitors are redirected.
    """


class DomainData(Model):
    """
    A custom domain.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    """
    `domain_…`.
    """
    hostname: str
    """
    In lower case, without a port.
    """
    state: Literal["live"]
    created_at: AwareDatetime
    """
    When it was added.
    """


class DomainLiveEvent(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    type: Literal["domain.live"]
    timestamp: AwareDatetime
    """
    When it happened.
    """
    data: DomainData


class MemberData(Model):
    """
    A member of a team.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    """
    `mbr_…`.
    """
    email: str
    role: Literal["owner", "admin", "editor", "viewer"]
    created_at: AwareDatetime
    """
    When the member was added.
    """


class TeamMemberAddedEvent(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    type: Literal["team.member_added"]
    timestamp: AwareDatetime
    """
    When it happened.
    """
    data: MemberData


class TeamMemberRemovedEvent(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    type: Literal["team.member_removed"]
    timestamp: AwareDatetime
    """
    When it happened.
    """
    data: MemberData


class ErrorBody(Model):
    """
    Every error.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    error: str
    """
    One sentence that a person can act on.
    """
    code: Literal["business_plan_required", "qr_limit_reached", "batch_limit_exceeded"] | None = (
        None
    )
    """
    On some 403s.
    """
    limit: int | None = None
    """
    With `qr_limit_reached`: codes allowed.
    """
    used: int | None = None
    """
    With `qr_limit_reached`: codes in use.
    """


class Code(Model):
    """
    A QR code.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    """
    The identifier used in paths: `qr_…`.
    """
    type: Literal["dynamic", "static", "landing_page"]
    """
    Only a dynamic code has a target.
    """
    short_code: str
    """
    Allocated at creation; the last part of the scan URL.
    """
    scan_url: str
    """
    The URL in the print, on the code's own domain.
    """
    target_url: str | None = None
    """
    The target of scans. Dynamic codes only.
    """
    payload: str | None = None
    """
    The encoded content. Static codes only.
    """
    name: str | None
    """
    A name of your own.
    """
    paused: bool
    """
    A paused code shows a "paused" page when it is scanned.
    """
    folder: CodeFolder | None
    tags: list[str]
    """
    Names of its tags, in alphabetical order.
    """
    scan_count: int
    """
    All scans, including archived ones; never decreases.
    """
    campaign_type: str | None
    """
    The campaign type given at creation.
    """
    domain_id: str | None
    """
    The custom domain it is printed on; null: the platform’s.
    """
    design: Design
    version: int
    """
    1 when created; every change but a scan increments it.
    """
    created_at: AwareDatetime
    updated_at: AwareDatetime
    """
    Never decreases from one version to the next.
    """


class ScanBreakdowns(Model):
    """
    For the requested window only, unlike `total_scans`.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    days: list[DayScans]
    """
    Every day of the window, including those without scans, oldest first.
    """
    countries: list[CountryScans]
    """
    Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.
    """
    devices: list[DeviceScans]
    """
    `mobile`, `tablet`, `desktop`, `bot`, `other`.
    """
    operating_systems: list[OperatingSystemScans]
    """
    Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.
    """
    browsers: list[BrowserScans]
    """
    Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.
    """
    referrers: list[ReferrerScans]
    """
    Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.
    """


class Batch(Model):
    """
    A batch of codes.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    """
    The identifier used in paths: `batch_…`.
    """
    name: str | None
    """
    A name of your own.
    """
    status: Literal["processing", "completed"]
    """
    Completed: every row is final.
    """
    counts: BatchCounts
    domain_id: str | None
    """
    The custom domain of its codes; null: the platform’s.
    """
    design: Design
    created_at: AwareDatetime
    completed_at: AwareDatetime | None
    """
    Null until completed.
    """


class BatchWithRows(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    """
    The identifier used in paths: `batch_…`.
    """
    name: str | None
    """
    A name of your own.
    """
    status: Literal["processing", "completed"]
    """
    Completed: every row is final.
    """
    counts: BatchCounts
    domain_id: str | None
    """
    The custom domain of its codes; null: the platform’s.
    """
    design: Design
    created_at: AwareDatetime
    completed_at: AwareDatetime | None
    """
    Null until completed.
    """
    rows: list[BatchRow]


class PolicyConditions(Model):
    """
    When a rule applies: all conditions must hold.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    from_: AwareDatetime | None = Field(None, alias="from")
    """
    Holds from this instant on.
    """
    until: AwareDatetime | None = None
    """
    Holds until just before this instant.
    """
    weekly: PolicyWeekly | None = None
    countries: list[str] | None = None
    """
    ISO 3166-1 alpha-2 in capitals, or `unknown`.
    """
    languages: list[str] | None = None
    """
    Language ranges (RFC 4647, basic filtering) for the language that the visitor prefers.
    """
    devices: list[str] | None = None
    """
    `mobile`, `tablet`, `desktop`, `bot` or `other`.
    """
    operating_systems: list[str] | None = None
    """
    In lower case, or `unknown`.
    """


class PolicyOutcome(Model):
    """
    What scans lead to: exactly one of these.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    target_url: str | None = None
    """
    Where visitors are redirected.
    """
    split: list[PolicyVariant] | None = None
    """
    Targets of which each visitor gets one.
    """
    page: Literal["paused", "gone"] | None = None
    """
    A page of the platform.
    """


class BulkCompletedEvent(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    type: Literal["bulk.completed"]
    timestamp: AwareDatetime
    """
    When it happened.
    """
    data: Batch


class Analytics(Model):
    """
    Scans of a code.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    """
    The code, `qr_…`.
    """
    total_scans: int
    """
    All scans of the code, including archived ones.
    """
    period: int
    """
    Days of the window, which ends today (UTC) and includes it.
    """
    from_: date_aliased = Field(..., alias="from")
    """
    First day of the window.
    """
    to: date_aliased
    """
    Last day of the window.
    """
    period_scans: int
    """
    Scans in the window.
    """
    unique_scans: int
    """
    Visitors in the window; a visitor on two days counts twice.
    """
    breakdowns: ScanBreakdowns


class PolicyRule(Model):
    """
    A rule of a policy; without `when` it always applies.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    name: str | None = None
    """
    What previews and lists call it.
    """
    when: PolicyConditions | None = None
    then: PolicyOutcome


class Policy(Model):
    """
    What precedes `target_url` of a dynamic code.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    rules: list[PolicyRule] | None = None
    """
    The first one whose conditions all hold decides; if none does, `target_url` applies.
    """
    pass_query: bool | None = None
    """
    Whether query parameters of the scan URL are added to the target.
    """
    parameters: dict[str, str] | None = None
    """
    Query parameters that are added to every target.
    """


class ChangedCodeData(Model):
    """
    The code as REST shows it after the change, and its policy if it has one.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    """
    The identifier used in paths: `qr_…`.
    """
    type: Literal["dynamic", "static", "landing_page"]
    """
    Only a dynamic code has a target.
    """
    short_code: str
    """
    Allocated at creation; the last part of the scan URL.
    """
    scan_url: str
    """
    The URL in the print, on the code's own domain.
    """
    target_url: str | None = None
    """
    The target of scans. Dynamic codes only.
    """
    payload: str | None = None
    """
    The encoded content. Static codes only.
    """
    name: str | None
    """
    A name of your own.
    """
    paused: bool
    """
    A paused code shows a "paused" page when it is scanned.
    """
    folder: CodeFolder | None
    tags: list[str]
    """
    Names of its tags, in alphabetical order.
    """
    scan_count: int
    """
    All scans, including archived ones; never decreases.
    """
    campaign_type: str | None
    """
    The campaign type given at creation.
    """
    domain_id: str | None
    """
    The custom domain it is printed on; null: the platform’s.
    """
    design: Design
    version: int
    """
    1 when created; every change but a scan increments it.
    """
    created_at: AwareDatetime
    updated_at: AwareDatetime
    """
    Never decreases from one version to the next.
    """
    short: str
    """
    The path of its scan URL: `/r/{short_code}`.
    """
    policy: Policy | None = None
    changed: list[str]
    """
    Names of the changed fields; `deleted` for a restored code.
    """


class QrUpdatedEvent(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    type: Literal["qr.updated"]
    timestamp: AwareDatetime
    """
    When it happened.
    """
    data: ChangedCodeData


class CodeData(Model):
    """
    The code as REST shows it, and its policy if it has one.
    """

    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    id: str
    """
    The identifier used in paths: `qr_…`.
    """
    type: Literal["dynamic", "static", "landing_page"]
    """
    Only a dynamic code has a target.
    """
    short_code: str
    """
    Allocated at creation; the last part of the scan URL.
    """
    scan_url: str
    """
    The URL in the print, on the code's own domain.
    """
    target_url: str | None = None
    """
    The target of scans. Dynamic codes only.
    """
    payload: str | None = None
    """
    The encoded content. Static codes only.
    """
    name: str | None
    """
    A name of your own.
    """
    paused: bool
    """
    A paused code shows a "paused" page when it is scanned.
    """
    folder: CodeFolder | None
    tags: list[str]
    """
    Names of its tags, in alphabetical order.
    """
    scan_count: int
    """
    All scans, including archived ones; never decreases.
    """
    campaign_type: str | None
    """
    The campaign type given at creation.
    """
    domain_id: str | None
    """
    The custom domain it is printed on; null: the platform’s.
    """
    design: Design
    version: int
    """
    1 when created; every change but a scan increments it.
    """
    created_at: AwareDatetime
    updated_at: AwareDatetime
    """
    Never decreases from one version to the next.
    """
    short: str
    """
    The path of its scan URL: `/r/{short_code}`.
    """
    policy: Policy | None = None


class QrCreatedEvent(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    type: Literal["qr.created"]
    timestamp: AwareDatetime
    """
    When it happened.
    """
    data: CodeData


class QrArchivedEvent(Model):
    model_config = ConfigDict(
        use_attribute_docstrings=True,
    )
    type: Literal["qr.archived"]
    timestamp: AwareDatetime
    """
    When it happened.
    """
    data: CodeData
