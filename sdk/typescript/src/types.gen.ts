// Generated from the OpenAPI document by `npm run generate`. Do not edit.

/**
 * A QR code.
 */
export interface Code {
  /**
   * The identifier used in paths: `qr_…`.
   */
  id: string;
  /**
   * Only a dynamic code has a target.
   */
  type: 'dynamic' | 'static' | 'landing_page';
  /**
   * Allocated at creation; the last part of the scan URL.
   */
  short_code: string;
  /**
   * The URL in the print, on the code's own domain.
   */
  scan_url: string;
  /**
   * The target of scans. Dynamic codes only.
   */
  target_url?: string;
  /**
   * The encoded content. Static codes only.
   */
  payload?: string;
  /**
   * A name of your own.
   */
  name: string | null;
  /**
   * A paused code shows a "paused" page when it is scanned.
   */
  paused: boolean;
  folder: CodeFolder | null;
  /**
   * Names of its tags, in alphabetical order.
   */
  tags: string[];
  /**
   * All scans, including archived ones; never decreases.
   */
  scan_count: number;
  /**
   * The campaign type given at creation.
   */
  campaign_type: string | null;
  /**
   * The custom domain it is printed on; null: the platform’s.
   */
  domain_id: string | null;
  design: Design;
  /**
   * 1 when created; every change but a scan increments it.
   */
  version: number;
  created_at: string;
  /**
   * Never decreases from one version to the next.
   */
  updated_at: string;
}
/**
 * The folder of a code.
 */
export interface CodeFolder {
  id: string;
  name: string;
}
/**
 * Colours of images.
 */
export interface Design {
  /**
   * The modules: `#rgb` or `#rrggbb`.
   */
  foregroundColor: string;
  /**
   * The background: `#rgb` or `#rrggbb`.
   */
  backgroundColor: string;
}
/**
 * Of a page requested by cursor or offset.
 */
export interface CursorPagination {
  /**
   * The page size used.
   */
  limit: number;
  /**
   * The offset used; null if requested by cursor.
   */
  offset: number | null;
  /**
   * The `cursor` of the next page; null on the last page.
   */
  next_cursor: string | null;
}
export interface ListCodesResponse {
  success: true;
  data: Code[];
  pagination: CursorPagination;
  /**
   * Codes that match; with a cursor, from this page onwards.
   */
  total: number;
}
export interface CreateCodeRequest {
  /**
   * The target of scans: an absolute http or https URL without credentials.
   */
  target_url: string;
  /**
   * A name of your own; empty becomes null.
   */
  name?: string | null;
  /**
   * Your own term for the kind of campaign.
   */
  campaign_type?: string | null;
  /**
   * A verified custom domain of the account; default: the platform’s.
   */
  domain_id?: string | null;
  /**
   * Folder id or name; an unknown name is created.
   */
  folder?: string | null;
  /**
   * Tag ids or names; unknown names are created, duplicates count once.
   */
  tags?: string[] | null;
}
export interface CreateCodeResponse {
  success: true;
  data: Code;
  /**
   * One sentence for each reason why a label could not be applied.
   */
  warnings?: string[];
}
export interface GetCodeResponse {
  success: true;
  data: Code;
}
export interface UpdateCodeRequest {
  /**
   * The target of scans: an absolute http or https URL without credentials.
   */
  target_url?: string;
  /**
   * A name of your own; empty becomes null.
   */
  name?: string | null;
  /**
   * True pauses the code, false resumes it.
   */
  paused?: boolean;
  /**
   * Folder id or name; an unknown name is created. Null removes the code from its folder.
   */
  folder?: string | null;
  /**
   * Replaces all tags. Tag ids or names; unknown names are created, duplicates count once.
   */
  tags?: string[];
}
export interface UpdateCodeResponse {
  success: true;
  data: Code;
}
export interface DeletedCode {
  id: string;
  deleted: true;
}
export interface DeleteCodeResponse {
  success: true;
  data: DeletedCode;
}
/**
 * Scans of a code.
 */
export interface Analytics {
  /**
   * The code, `qr_…`.
   */
  id: string;
  /**
   * All scans of the code, including archived ones.
   */
  total_scans: number;
  /**
   * Days of the window, which ends today (UTC) and includes it.
   */
  period: number;
  /**
   * First day of the window.
   */
  from: string;
  /**
   * Last day of the window.
   */
  to: string;
  /**
   * Scans in the window.
   */
  period_scans: number;
  /**
   * Visitors in the window; a visitor on two days counts twice.
   */
  unique_scans: number;
  breakdowns: ScanBreakdowns;
}
/**
 * For the requested window only, unlike `total_scans`.
 */
export interface ScanBreakdowns {
  /**
   * Every day of the window, including those without scans, oldest first.
   */
  days: DayScans[];
  /**
   * Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.
   */
  countries: CountryScans[];
  /**
   * `mobile`, `tablet`, `desktop`, `bot`, `other`.
   */
  devices: DeviceScans[];
  /**
   * Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.
   */
  operating_systems: OperatingSystemScans[];
  /**
   * Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.
   */
  browsers: BrowserScans[];
  /**
   * Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.
   */
  referrers: ReferrerScans[];
}
export interface DayScans {
  date: string;
  /**
   * Visitors.
   */
  unique: number;
  /**
   * Scans with it.
   */
  scans: number;
}
export interface CountryScans {
  /**
   * ISO 3166 alpha-2, or `unknown`.
   */
  country: string;
  /**
   * Scans with it.
   */
  scans: number;
}
export interface DeviceScans {
  device: string;
  /**
   * Scans with it.
   */
  scans: number;
}
export interface OperatingSystemScans {
  operating_system: string;
  /**
   * Scans with it.
   */
  scans: number;
}
export interface BrowserScans {
  browser: string;
  /**
   * Scans with it.
   */
  scans: number;
}
export interface ReferrerScans {
  /**
   * A host, or `direct`.
   */
  referrer: string;
  /**
   * Scans with it.
   */
  scans: number;
}
export interface GetCodeAnalyticsResponse {
  success: true;
  data: Analytics;
}
/**
 * A batch of codes.
 */
export interface Batch {
  /**
   * The identifier used in paths: `batch_…`.
   */
  id: string;
  /**
   * A name of your own.
   */
  name: string | null;
  /**
   * Completed: every row is final.
   */
  status: 'processing' | 'completed';
  counts: BatchCounts;
  /**
   * The custom domain of its codes; null: the platform’s.
   */
  domain_id: string | null;
  design: Design;
  created_at: string;
  /**
   * Null until completed.
   */
  completed_at: string | null;
}
/**
 * Rows by status.
 */
export interface BatchCounts {
  /**
   * All rows.
   */
  total: number;
  /**
   * Rows that wait.
   */
  pending: number;
  /**
   * Rows that became codes.
   */
  created: number;
  /**
   * Invalid rows.
   */
  failed: number;
  /**
   * Rows beyond the QR code limit.
   */
  skipped: number;
}
/**
 * Of a page requested by offset.
 */
export interface Pagination {
  /**
   * The page size used.
   */
  limit: number;
  /**
   * The offset used.
   */
  offset: number;
}
export interface ListBatchesResponse {
  success: true;
  data: Batch[];
  pagination: Pagination;
  /**
   * All batches of the account.
   */
  total: number;
}
/**
 * A code to create, by the rules of `createCode`.
 */
export interface BatchRowInput {
  /**
   * The target of scans: an absolute http or https URL without credentials.
   */
  target_url: string;
  /**
   * A name of your own; empty becomes null.
   */
  name?: string | null;
  /**
   * Your own term for the kind of campaign.
   */
  campaign_type?: string | null;
  /**
   * Folder id or name; an unknown name is created.
   */
  folder?: string | null;
  /**
   * Tag ids or names; unknown names are created, duplicates count once.
   */
  tags?: string[] | null;
  /**
   * Your own identifier for the object that carries the code; stored with the row.
   */
  external_ref?: string | null;
}
/**
 * Colours of the images.
 */
export interface DesignInput {
  /**
   * The modules: `#rgb` or `#rrggbb`; default `#000000`.
   */
  foregroundColor?: string;
  /**
   * The background: `#rgb` or `#rrggbb`; default `#ffffff`.
   */
  backgroundColor?: string;
}
export interface CreateBatchRequest {
  /**
   * In print order.
   */
  rows: BatchRowInput[];
  /**
   * A name of your own; empty becomes null.
   */
  name?: string;
  /**
   * A live custom domain of the account that every code is printed on.
   */
  domain_id?: string;
  design?: DesignInput;
}
export interface CreateBatchResponse {
  success: true;
  data: Batch;
  /**
   * Present if scanners may be unable to read codes in these colours.
   */
  warnings?: string[];
}
export interface BatchWithRows {
  /**
   * The identifier used in paths: `batch_…`.
   */
  id: string;
  /**
   * A name of your own.
   */
  name: string | null;
  /**
   * Completed: every row is final.
   */
  status: 'processing' | 'completed';
  counts: BatchCounts;
  /**
   * The custom domain of its codes; null: the platform’s.
   */
  domain_id: string | null;
  design: Design;
  created_at: string;
  /**
   * Null until completed.
   */
  completed_at: string | null;
  rows: BatchRow[];
}
/**
 * The result of a row.
 */
export interface BatchRow {
  /**
   * Its index in the request, from 0.
   */
  index: number;
  status: 'pending' | 'created' | 'failed' | 'skipped';
  /**
   * As it was sent, but trimmed if it is longer than 2,048 characters; of a row that failed, cut off after as many.
   */
  target_url: string | null;
  /**
   * As it was sent; of a row that failed, cut off after 256 characters.
   */
  name: string | null;
  /**
   * As it was sent; of a row that failed, cut off after 256 characters.
   */
  external_ref: string | null;
  /**
   * The code, once created.
   */
  id: string | null;
  /**
   * The short code, once created.
   */
  short_code: string | null;
  /**
   * The scan URL, once created.
   */
  scan_url: string | null;
  /**
   * Why it failed or was skipped, as a sentence.
   */
  reason: string | null;
  /**
   * Present if the folder or tags of a created row could not be applied: one sentence for each reason.
   */
  warnings?: string[];
}
export interface GetBatchResponse {
  success: true;
  data: BatchWithRows;
  pagination: Pagination;
  /**
   * Rows that match `status`.
   */
  total: number;
}
/**
 * A folder; a code is in at most one.
 */
export interface Folder {
  id: string;
  name: string;
  /**
   * Codes that are not deleted.
   */
  code_count: number;
}
export interface ListFoldersResponse {
  success: true;
  data: Folder[];
}
/**
 * A tag; a code may have several.
 */
export interface Tag {
  id: string;
  name: string;
  /**
   * Codes that are not deleted.
   */
  code_count: number;
}
export interface ListTagsResponse {
  success: true;
  data: Tag[];
}
/**
 * An OpenAPI 3.1 document.
 */
export interface GetOpenApiResponse {
  [k: string]: unknown;
}
/**
 * The code as REST shows it, and its policy if it has one.
 */
export interface CodeData {
  /**
   * The identifier used in paths: `qr_…`.
   */
  id: string;
  /**
   * Only a dynamic code has a target.
   */
  type: 'dynamic' | 'static' | 'landing_page';
  /**
   * Allocated at creation; the last part of the scan URL.
   */
  short_code: string;
  /**
   * The URL in the print, on the code's own domain.
   */
  scan_url: string;
  /**
   * The target of scans. Dynamic codes only.
   */
  target_url?: string;
  /**
   * The encoded content. Static codes only.
   */
  payload?: string;
  /**
   * A name of your own.
   */
  name: string | null;
  /**
   * A paused code shows a "paused" page when it is scanned.
   */
  paused: boolean;
  folder: CodeFolder | null;
  /**
   * Names of its tags, in alphabetical order.
   */
  tags: string[];
  /**
   * All scans, including archived ones; never decreases.
   */
  scan_count: number;
  /**
   * The campaign type given at creation.
   */
  campaign_type: string | null;
  /**
   * The custom domain it is printed on; null: the platform’s.
   */
  domain_id: string | null;
  design: Design;
  /**
   * 1 when created; every change but a scan increments it.
   */
  version: number;
  created_at: string;
  /**
   * Never decreases from one version to the next.
   */
  updated_at: string;
  /**
   * The path of its scan URL: `/r/{short_code}`.
   */
  short: string;
  policy?: Policy;
}
/**
 * What precedes `target_url` of a dynamic code.
 */
export interface Policy {
  /**
   * The first one whose conditions all hold decides; if none does, `target_url` applies.
   */
  rules?: PolicyRule[];
  /**
   * Whether query parameters of the scan URL are added to the target.
   */
  pass_query?: boolean;
  /**
   * Query parameters that are added to every target.
   */
  parameters?: {
    [k: string]: string;
  };
}
/**
 * A rule of a policy; without `when` it always applies.
 */
export interface PolicyRule {
  /**
   * What previews and lists call it.
   */
  name?: string;
  when?: PolicyConditions;
  then: PolicyOutcome;
}
/**
 * When a rule applies: all conditions must hold.
 */
export interface PolicyConditions {
  /**
   * Holds from this instant on.
   */
  from?: string;
  /**
   * Holds until just before this instant.
   */
  until?: string;
  weekly?: PolicyWeekly;
  /**
   * ISO 3166-1 alpha-2 in capitals, or `unknown`.
   */
  countries?: string[];
  /**
   * Language ranges (RFC 4647, basic filtering) for the language that the visitor prefers.
   */
  languages?: string[];
  /**
   * `mobile`, `tablet`, `desktop`, `bot` or `other`.
   */
  devices?: string[];
  /**
   * In lower case, or `unknown`.
   */
  operating_systems?: string[];
}
/**
 * Times that recur every week.
 */
export interface PolicyWeekly {
  /**
   * A name of the IANA time zone database: `Europe/Berlin`.
   */
  time_zone: string;
  /**
   * The days on which it begins: `mon` to `sun`.
   */
  days: string[];
  /**
   * `HH:MM`, local time.
   */
  from: string;
  /**
   * `HH:MM`, local time; of the next day if it is not later than `from`.
   */
  until: string;
}
/**
 * What scans lead to: exactly one of these.
 */
export interface PolicyOutcome {
  /**
   * Where visitors are redirected.
   */
  target_url?: string;
  /**
   * Targets of which each visitor gets one.
   */
  split?: PolicyVariant[];
  /**
   * A page of the platform.
   */
  page?: 'paused' | 'gone';
}
/**
 * One target of a split.
 */
export interface PolicyVariant {
  /**
   * Its name in analytics.
   */
  label: string;
  /**
   * Its share is this over the sum of all weights.
   */
  weight: number;
  /**
   * Where its visitors are redirected.
   */
  target_url: string;
}
export interface QrCreatedEvent {
  type: 'qr.created';
  /**
   * When it happened.
   */
  timestamp: string;
  data: CodeData;
}
/**
 * The code as REST shows it after the change, and its policy if it has one.
 */
export interface ChangedCodeData {
  /**
   * The identifier used in paths: `qr_…`.
   */
  id: string;
  /**
   * Only a dynamic code has a target.
   */
  type: 'dynamic' | 'static' | 'landing_page';
  /**
   * Allocated at creation; the last part of the scan URL.
   */
  short_code: string;
  /**
   * The URL in the print, on the code's own domain.
   */
  scan_url: string;
  /**
   * The target of scans. Dynamic codes only.
   */
  target_url?: string;
  /**
   * The encoded content. Static codes only.
   */
  payload?: string;
  /**
   * A name of your own.
   */
  name: string | null;
  /**
   * A paused code shows a "paused" page when it is scanned.
   */
  paused: boolean;
  folder: CodeFolder | null;
  /**
   * Names of its tags, in alphabetical order.
   */
  tags: string[];
  /**
   * All scans, including archived ones; never decreases.
   */
  scan_count: number;
  /**
   * The campaign type given at creation.
   */
  campaign_type: string | null;
  /**
   * The custom domain it is printed on; null: the platform’s.
   */
  domain_id: string | null;
  design: Design;
  /**
   * 1 when created; every change but a scan increments it.
   */
  version: number;
  created_at: string;
  /**
   * Never decreases from one version to the next.
   */
  updated_at: string;
  /**
   * The path of its scan URL: `/r/{short_code}`.
   */
  short: string;
  policy?: Policy;
  /**
   * Names of the changed fields; `deleted` for a restored code.
   */
  changed: string[];
}
export interface QrUpdatedEvent {
  type: 'qr.updated';
  /**
   * When it happened.
   */
  timestamp: string;
  data: ChangedCodeData;
}
export interface QrArchivedEvent {
  type: 'qr.archived';
  /**
   * When it happened.
   */
  timestamp: string;
  data: CodeData;
}
export interface BulkCompletedEvent {
  type: 'bulk.completed';
  /**
   * When it happened.
   */
  timestamp: string;
  data: Batch;
}
/**
 * A custom domain.
 */
export interface DomainData {
  /**
   * `domain_…`.
   */
  id: string;
  /**
   * In lower case, without a port.
   */
  hostname: string;
  state: 'live';
  /**
   * When it was added.
   */
  created_at: string;
}
export interface DomainLiveEvent {
  type: 'domain.live';
  /**
   * When it happened.
   */
  timestamp: string;
  data: DomainData;
}
/**
 * A member of a team.
 */
export interface MemberData {
  /**
   * `mbr_…`.
   */
  id: string;
  email: string;
  role: 'owner' | 'admin' | 'editor' | 'viewer';
  /**
   * When the member was added.
   */
  created_at: string;
}
export interface TeamMemberAddedEvent {
  type: 'team.member_added';
  /**
   * When it happened.
   */
  timestamp: string;
  data: MemberData;
}
export interface TeamMemberRemovedEvent {
  type: 'team.member_removed';
  /**
   * When it happened.
   */
  timestamp: string;
  data: MemberData;
}
/**
 * Every error.
 */
export interface ErrorBody {
  /**
   * One sentence that a person can act on.
   */
  error: string;
  /**
   * On some 403s.
   */
  code?: 'business_plan_required' | 'qr_limit_reached' | 'batch_limit_exceeded';
  /**
   * With `qr_limit_reached`: codes allowed.
   */
  limit?: number;
  /**
   * With `qr_limit_reached`: codes in use.
   */
  used?: number;
}
