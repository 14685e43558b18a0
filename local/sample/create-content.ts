import { setTimeout as sleep } from 'node:timers/promises';
import type { CoreClients } from '../../cli/clients.ts';
import { Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchStatus, RowStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import type { Code } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Target } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { BATCH, BATCH_SCANS, CODES, DOMAIN, ENDPOINT } from './content.ts';
import type { SampleCode, ScanPattern } from './sample-code.ts';

/** A code to scan. */
export interface ScannedCode {
  /** `qr_…`. */
  readonly id: string;
  readonly pattern: ScanPattern;
  /**
   * The versions of its target, oldest first, and how many days before the end each became current; empty for a page.
   */
  readonly versions: readonly { readonly daysAgo: number; readonly target: Target }[];
}

/** A team beside the owner. Nothing is ever sent to these addresses. */
const TEAM = [
  { email: 'maya@harbour-kitchens.example', role: Role.ADMIN },
  { email: 'tom@harbour-kitchens.example', role: Role.EDITOR },
  { email: 'ines@harbour-kitchens.example', role: Role.VIEWER },
];

/** The most codes of a page. */
const PAGE = 100;

/** How long the background work may take for the batch, in ms, and how often it is looked at. */
const [BATCH_MS, POLL_MS] = [60_000, 200];

/**
 * Creates what is missing of the sample, by name, and returns the codes to scan. A part of it may exist: an earlier
 * call may have been interrupted.
 */
export async function createContent(core: CoreClients): Promise<ScannedCode[]> {
  const { members } = await core.accounts.listMembers({});
  for (const member of TEAM) {
    if (!members.some(({ email }) => email === member.email)) await core.accounts.addMember(member);
  }
  const scanned: ScannedCode[] = [];
  // First, because lists begin with what is newest.
  for (const [index, id] of (await createBatch(core)).entries()) {
    const { target } = await core.targets.getTarget({ id });
    const pattern = { ...BATCH_SCANS, perDay: BATCH_SCANS.perDay * (0.4 + ((index * 7) % 13) / 10) };
    scanned.push({ id, pattern, versions: target ? [{ daysAgo: Number.POSITIVE_INFINITY, target }] : [] });
  }
  const existing = new Map((await core.codes.listCodes({ limit: PAGE })).codes.map((code) => [code.name, code]));
  for (const wanted of CODES.toReversed()) {
    const { id } = existing.get(wanted.name) ?? (await createCode(core, wanted));
    const versions = await setTargets(core, id, wanted);
    await fileCode(core, id, wanted);
    if (wanted.scans) scanned.push({ id, pattern: wanted.scans, versions });
  }
  const { domains } = await core.domains.listDomains({});
  if (domains.length === 0) await core.domains.addDomain({ hostname: DOMAIN });
  const { endpoints } = await core.webhooks.listEndpoints({});
  // Last, so that only changes by people are sent to it.
  if (endpoints.length === 0) await core.webhooks.createEndpoint(ENDPOINT);
  return scanned;
}

async function createCode(
  { codes }: CoreClients,
  { name, folder, tags, content }: SampleCode,
): Promise<Pick<Code, 'id'>> {
  const { code } =
    'targetUrl' in content
      ? await codes.createCode({
          name,
          tags: [...tags],
          targetUrl: content.targetUrl,
          ...(folder !== undefined && { folder }),
          ...(content.campaignType !== undefined && { campaignType: content.campaignType }),
        })
      : 'page' in content
        ? await codes.createLandingPageCode({ name, ...content.page })
        : await codes.createStaticCode({ name, ...content.fixed });
  return code ?? { id: '' };
}

/** Sets those of a code's targets that are not set yet. Returns all of them. */
async function setTargets(
  { targets }: CoreClients,
  id: string,
  { content }: SampleCode,
): Promise<ScannedCode['versions']> {
  if (!('targetUrl' in content)) return [];
  const changes = content.changes ?? [];
  const { target } = await targets.getTarget({ id });
  let version = target?.version ?? 1;
  for (const { daysAgo: _, ...change } of changes.slice(version - 1)) {
    await targets.setTarget({ id, ...change, expectedVersion: version });
    version++;
  }
  const { versions } = await targets.listTargetVersions({ id });
  const daysAgo = [Number.POSITIVE_INFINITY, ...changes.map((change) => change.daysAgo)];
  return versions
    .toSorted((one, other) => one.version - other.version)
    .map((each, index) => ({ daysAgo: daysAgo[index] ?? 0, target: each }));
}

/** Files and pauses a code, as far as its creation could not. */
async function fileCode(
  { codes }: CoreClients,
  id: string,
  { tags, paused = false, content }: SampleCode,
): Promise<void> {
  if (!('targetUrl' in content)) await codes.updateCode({ id, tags: [...tags], updateMask: { paths: ['tags'] } });
  if (paused) await codes.updateCode({ id, paused, updateMask: { paths: ['paused'] } });
}

/** Creates the batch if it is missing, waits until it is completed, and returns the ids of its codes in their order. */
async function createBatch({ batches }: CoreClients): Promise<string[]> {
  const listed = await batches.listBatches({});
  const existing = listed.batches.find(({ name }) => name === BATCH.name);
  const { id = '' } = existing ?? (await batches.createBatch(BATCH)).batch ?? {};
  const deadline = performance.now() + BATCH_MS;
  while (performance.now() < deadline) {
    const { batch, rows } = await batches.getBatch({ id, status: RowStatus.CREATED, limit: PAGE });
    if (batch?.status === BatchStatus.COMPLETED) return rows.flatMap(({ codeId }) => codeId ?? []);
    await sleep(POLL_MS);
  }
  throw new Error('The batch was not completed in time.');
}
