import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { type Asked, ask } from './http.ts';
import {
  type Change,
  type Creation,
  type Ledger,
  numberIn,
  type TortureAccount,
  type TrackedCode,
  targetOf,
} from './ledger.ts';
import type { Platform } from './platform.ts';
import type { Random } from './random.ts';

const PAUSE_MS = 80;
const PAUSE_AFTER_FAILURE_MS = 500;
/** Attempts of a creation that has an `Idempotency-Key`. */
const ATTEMPTS = 60;
const BATCH_ROWS = 20;
/** So many codes of a client are never deleted. */
const KEPT = 10;

/** An API client of one account after the other, which knows what became of everything that it asked for. */
export class ApiClient {
  readonly #platform: Platform;
  readonly #ledger: Ledger;
  readonly #random: Random;
  readonly #name: string;
  readonly #accounts: readonly TortureAccount[];
  readonly #agent: Agent | undefined;
  readonly #own: TrackedCode[] = [];
  #gateway: number;
  #turn = 0;

  constructor(
    client: number,
    options: { platform: Platform; ledger: Ledger; random: Random; accounts: readonly TortureAccount[] },
  ) {
    this.#platform = options.platform;
    this.#ledger = options.ledger;
    this.#random = options.random;
    this.#accounts = options.accounts;
    this.#name = `a${client}`;
    this.#gateway = client % options.platform.gateways.length;
    this.#agent = client % 2 === 0 ? new Agent({ keepAlive: true, maxSockets: 1 }) : undefined;
  }

  /** Changes things until `going` says no. */
  async run(going: () => boolean): Promise<void> {
    while (going()) {
      const dice = this.#random.between(1, 100);
      if (dice <= 15) await this.create(dice <= 10);
      else if (dice <= 18) await this.#createBatch();
      else {
        const code = this.#random.oneOf(this.#own);
        if (dice <= 26 && this.#own.length > KEPT) await this.#delete(code);
        else if (dice <= 40) await this.#read(code);
        else await this.#update(code);
      }
      await sleep(PAUSE_MS);
    }
    this.#agent?.destroy();
  }

  /** Creates a code. `surely`: with a key, again and again until there is an answer that says what came of it. */
  async create(surely: boolean): Promise<void> {
    const key = `${this.#name}-${this.#turn++}`;
    const body = { target_url: targetOf(key, 0), name: key };
    const creation = await this.#creating({ name: key, kind: 'code', rows: 1 }, '/qr-codes', body, surely);
    if (creation.outcome !== 'acknowledged' || !creation.code) return;
    const { id, short_code: shortCode } = creation.code;
    const { account, endedAt } = creation;
    const change: Change = { number: 0, kind: 'create', paused: false, outcome: 'acknowledged', endedAt };
    const code = { account, key, id, shortCode, changes: [change] };
    this.#own.push(code);
    this.#ledger.codes.push(code);
  }

  async #createBatch(): Promise<void> {
    const name = `${this.#name}-b${this.#turn++}`;
    const rows = Array.from({ length: BATCH_ROWS }, (_, row) => ({
      target_url: targetOf(`${name}-${row}`, 0),
      name: `${name}-${row}`,
    }));
    await this.#creating({ name, kind: 'batch', rows: rows.length }, '/batches', { name, rows }, true);
  }

  async #creating(
    what: Pick<Creation, 'name' | 'kind' | 'rows'>,
    path: string,
    body: unknown,
    surely: boolean,
  ): Promise<Creation & { code?: CodeJson }> {
    const account = this.#random.oneOf(this.#accounts);
    const creation: Creation & { code?: CodeJson } = { ...what, account, outcome: 'unknown', endedAt: 0 };
    this.#ledger.creations.push(creation);
    const headers: Record<string, string> = surely ? { 'idempotency-key': randomUUID() } : {};
    for (let attempt = 0; attempt < (surely ? ATTEMPTS : 1); attempt++) {
      const asked = await this.#call(account, 'POST', path, body, headers);
      creation.endedAt = asked.endedAt;
      if (asked.status === 201 || asked.status === 202) {
        const { data } = JSON.parse(asked.body) as { data: CodeJson };
        creation.outcome = 'acknowledged';
        creation.id = data.id;
        if (what.kind === 'code') creation.code = data;
        return creation;
      }
      // A request with this key that is still in flight, or a limit of the account's.
      const again = asked.status === undefined || [409, 429, 503].includes(asked.status);
      if (!again) {
        creation.outcome = 'refused';
        this.#ledger.find('wrong', asked.endedAt, `POST ${path}: ${asked.status} ${asked.body}`);
        return creation;
      }
      if (asked.status === 429 && !surely) creation.outcome = 'refused';
      await sleep(PAUSE_AFTER_FAILURE_MS);
    }
    return creation;
  }

  async #update(code: TrackedCode): Promise<void> {
    const number = code.changes.length;
    const paused = this.#random.between(1, 10) === 1;
    const body = { target_url: targetOf(code.key, number), paused };
    await this.#change(code, { number, kind: 'update', paused, outcome: 'unknown', endedAt: 0 }, 'PATCH', body);
  }

  async #delete(code: TrackedCode): Promise<void> {
    this.#own.splice(this.#own.indexOf(code), 1);
    const number = code.changes.length;
    await this.#change(code, { number, kind: 'delete', paused: false, outcome: 'unknown', endedAt: 0 }, 'DELETE');
  }

  async #change(code: TrackedCode, change: Change, method: string, body?: unknown): Promise<void> {
    code.changes.push(change);
    const asked = await this.#call(code.account, method, `/qr-codes/${code.id}`, body);
    change.endedAt = asked.endedAt;
    if (asked.status === 200) change.outcome = 'acknowledged';
    else if (asked.status === 429) change.outcome = 'refused';
    else if (asked.status !== undefined && asked.status < 500) {
      change.outcome = 'refused';
      this.#ledger.find('wrong', asked.endedAt, `${method} ${code.key}: ${asked.status} ${asked.body}`);
    }
    if (asked.status !== 200) await sleep(PAUSE_AFTER_FAILURE_MS);
  }

  /** Nobody else changes the code: it is as the last acknowledged change left it, or as a later one without answer did. */
  async #read(code: TrackedCode): Promise<void> {
    const asked = await this.#call(code.account, 'GET', `/qr-codes/${code.id}`);
    if (asked.status !== 200) return;
    const { data } = JSON.parse(asked.body) as { data: CodeJson };
    const number = numberIn(code.key, data.target_url) ?? -1;
    const last = code.changes.findLast(({ outcome }) => outcome === 'acknowledged')?.number ?? 0;
    const shown = code.changes[number];
    if (number < last || shown === undefined || shown.outcome === 'refused') {
      this.#ledger.find('undone', asked.endedAt, `${code.key} read as change ${number} after ${last} was acknowledged`);
    }
  }

  async #call(
    { apiKey }: TortureAccount,
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Asked> {
    const url = `${this.#platform.gateways[this.#gateway]?.url}/api/v1${path}`;
    const asked = await ask(url, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      agent: this.#agent,
    });
    this.#ledger.count(asked, `${method} ${path} at gateway ${this.#gateway}`);
    if (asked.status === undefined) this.#gateway = (this.#gateway + 1) % this.#platform.gateways.length;
    return asked;
  }
}
