import { expect, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { expectCreated, expectHistory, expectState, type OutboxEvent } from './audit-changes.ts';
import { FAULTS } from './faults.ts';
import { type Change, Ledger, type TrackedCode, targetOf } from './ledger.ts';
import { schedule } from './schedule.ts';

const KEY = 'a0-1';
const account = { id: 'acct_1', apiKey: 'sk_live_1' };

/** A code whose changes had these outcomes, the first one being its creation. */
function codeWith(...outcomes: Change['outcome'][]): TrackedCode {
  const changes = outcomes.map((outcome, number): Change => {
    return { number, kind: number === 0 ? 'create' : 'update', paused: false, outcome, endedAt: number };
  });
  return { account, key: KEY, id: 'qr_1', shortCode: 'abc', changes };
}

function shownAt(number: number, name = KEY): CodeJson {
  return { name, target_url: targetOf(KEY, number), paused: false } as CodeJson;
}

function eventsOf(...numbers: number[]): OutboxEvent[] {
  return numbers.map((number) => ({
    id: `evt_${number}`,
    type: 'qr.updated',
    subject: 'qr_1',
    at: number,
    data: { target_url: targetOf(KEY, number) },
  }));
}

function findingKinds(look: (ledger: Ledger) => void): string[] {
  const ledger = new Ledger();
  look(ledger);
  return ledger.findings.map(({ kind }) => kind);
}

test('a code may be in the state of its last acknowledged change, or of a later unanswered one', () => {
  const code = codeWith('acknowledged', 'unknown', 'acknowledged', 'unknown', 'refused');
  const findings = (shown: CodeJson | undefined) => findingKinds((ledger) => expectState(ledger, code, shown));
  expect([2, 3].flatMap((number) => findings(shownAt(number)))).toEqual([]);
  for (const number of [0, 1, 4]) expect(findings(shownAt(number))).toEqual(['undone']);
  expect(findings({ ...shownAt(2), paused: true })).toEqual(['undone']);
  expect(findings(undefined)).toEqual(['undone']);
});

test('an acknowledged change has one event, and no earlier change’s event follows it', () => {
  const code = codeWith('acknowledged', 'unknown', 'acknowledged');
  const findings = (...numbers: number[]) =>
    findingKinds((ledger) => expectHistory(ledger, code, eventsOf(...numbers)));
  expect(findings(0, 2)).toEqual([]);
  expect(findings(0, 1, 2)).toEqual([]);
  expect(findings(0)).toEqual(['lost']);
  expect(findings(0, 2, 1)).toEqual(['undone']);
  expect(findings(0, 2, 2)).toEqual(['duplicated']);
});

test('an acknowledged creation exists once, any other at most once', () => {
  const findings = (outcome: Change['outcome'], codes: number) =>
    findingKinds((ledger) => {
      ledger.creations.push({ account, name: KEY, rows: 1, kind: 'code', outcome, endedAt: 0 });
      expectCreated(ledger, new Map(Array.from({ length: codes }, (_, index) => [`qr_${index}`, shownAt(0)])));
    });
  expect([findings('acknowledged', 1), findings('unknown', 1), findings('unknown', 0)].flat()).toEqual([]);
  expect(findings('acknowledged', 0)).toEqual(['lost']);
  expect(findings('unknown', 2)).toEqual(['duplicated']);
});

test('a seed determines all injections', () => {
  const first = (seed: number) =>
    schedule(seed, FAULTS)
      .take(50)
      .map(({ name, apartMs, faults }) => [
        name,
        apartMs,
        faults.map(({ seconds, random }) => [seconds, random.between(0, 1_000)]),
      ])
      .toArray();
  expect(first(4711)).toEqual(first(4711));
  expect(first(4711)).not.toEqual(first(4712));
});
