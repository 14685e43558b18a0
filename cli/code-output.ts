import type { Command } from 'commander';
import { type CodeJson, codeJson } from '../common/contract/code-json.ts';
import { requiredField } from '../common/contract/required-field.ts';
import type { Code } from '../proto/gen/signpost/codes/v1/codes_pb.ts';
import { withOptionName } from './option-names.ts';
import { type DisplayRecord, fields, fittedTable, onOneLine, print } from './output.ts';
import { age, dateAndTime } from './times.ts';

/** Prints a code that `command` has created or changed, and on standard error what was not applied. */
export function showCode(
  command: Command,
  json: boolean,
  { code, warnings = [] }: { readonly code?: Code | undefined; readonly warnings?: readonly string[] },
): void {
  for (const warning of warnings) console.error(onOneLine(`Note: ${withOptionName(command, warning)}`));
  const shown = codeJson(requiredField(code, 'code'));
  const { id, type, name, paused } = shown;
  print(json, shown, () => fields({ id, type, name, ...contentOf(shown), ...(paused ? { state: 'paused' } : {}) }));
}

/** All about a code, for people. `now`: the time that ages are relative to. */
export function shownInFull(code: CodeJson, now: Date): string {
  const { id, type, name, folder, tags, scan_count, campaign_type, domain_id, design } = code;
  return fields({
    id,
    type,
    name,
    ...contentOf(code),
    state: code.paused ? 'paused' : 'active',
    folder: folder?.name ?? null,
    tags: tags.join(', ') || null,
    scans: scan_count.toLocaleString('en'),
    campaign_type,
    domain: domain_id,
    colours: `${design.foregroundColor} on ${design.backgroundColor}`,
    created: dateAndTime(code.created_at, now),
    updated: `${dateAndTime(code.updated_at, now)}, version ${code.version}`,
  });
}

/** A line per code, at most as wide as the terminal. `now`: the time that ages are relative to. */
export function codesTable(codes: readonly CodeJson[], now: Date): string {
  const rows = codes.map(({ id, name, scan_count, created_at, ...code }) => ({
    id,
    name,
    scans: scan_count.toLocaleString('en', { notation: 'compact' }),
    created: age(created_at, now),
    target: `${code.paused ? '(paused) ' : ''}${code.target_url ?? code.payload ?? 'landing page'}`,
  }));
  return fittedTable(rows, { name: 12, target: 10 });
}

function contentOf({ type, payload, scan_url, target_url }: CodeJson): DisplayRecord {
  if (type === 'static') return { payload: payload ?? null };
  return type === 'dynamic' ? { scan_url, target_url: target_url ?? null } : { scan_url };
}
