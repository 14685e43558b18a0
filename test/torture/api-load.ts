import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CodeJson } from '../../common/contract/code-json.ts';
import type { Random } from '../../local/sample/random.ts';
import { type RequestResult, sendRequest } from './http.ts';
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

const PAUSE_MS = 80;
const PAUSE_AFTER_FAILURE_MS = 500;
/** Attempts of a creation that has an `Idempotency-Key`. */
const ATTEMPTS = 60;
const BATCH_ROWS = 20;
/** The number of codes of a client that are never deleted. */
const MIN_CODES = 10;

/** An API client with several accounts, which records the outcome of each of its requests. */
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

  /** Sends changes while `isRunning()`. */
  async run(isRunning: () => boolean): Promise<void> {
    while (isRunning()) {
      const dice = this.#random.between(1, 100);
      if (dice <= 15) await this.create(dice <= 10);
      else if (dice <= 18) await this.#createBatch();
      else {
        const code = this.#random.oneOf(this.#own);
        if (dice <= 26 && this.#own.length > MIN_CODES) await this.#delete(code);
        else if (dice <= 40) await this.#read(code);
        else await this.#update(code);
      }
      await sleep(PAUSE_MS);
    }
    this.#agent?.destroy();
  }

  /** Creates a code. `retried`: with an idempotency key, until a response shows the outcome. */
  async create(retried: boolean): Promise<void> {
    const key = `${this.#name}-${this.#turn++}`;
    const body = { target_url: targetOf(key, 0), name: key };
    const creation = await this.#sendCreation({ name: key, kind: 'code', rows: 1 }, '/qr-codes', body, retried);
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
    await this.#sendCreation({ name, kind: 'batch', rows: rows.length }, '/batches', { name, rows }, true);
  }

  async #sendCreation(
    what: Pick<Creation, 'name' | 'kind' | 'rows'>,
    path: string,
    body: unknown,
    retried: boolean,
  ): Promise<Creation & { code?: CodeJson }> {
    const account = this.#random.oneOf(this.#accounts);
    const creation: Creation & { code?: CodeJson } = { ...what, account, outcome: 'unknown', endedAt: 0 };
    this.#ledger.creations.push(creation);
    const headers: Record<string, string> = retried ? { 'idempotency-key': randomUUID() } : {};
    for (let attempt = 0; attempt < (retried ? ATTEMPTS : 1); attempt++) {
      const result = await this.#call(account, 'POST', path, body, headers);
      creation.endedAt = result.endedAt;
      if (result.status === 201 || result.status === 202) {
        const { data } = JSON.parse(result.body) as { data: CodeJson };
        creation.outcome = 'acknowledged';
        creation.id = data.id;
        if (what.kind === 'code') creation.code = data;
        return creation;
      }
      // 409: another request with this key is still in progress. 429: a limit of the account.
      const isRetryable = result.status === undefined || [409, 429, 503].includes(result.status);
      if (!isRetryable) {
        creation.outcome = 'refused';
        this.#ledger.find('wrong', result.endedAt, `POST ${path}: ${result.status} ${result.body}`);
        return creation;
      }
      if (result.status === 429 && !retried) creation.outcome = 'refused';
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
    const result = await this.#call(code.account, method, `/qr-codes/${code.id}`, body);
    change.endedAt = result.endedAt;
    if (result.status === 200) change.outcome = 'acknowledged';
    else if (result.status === 429) change.outcome = 'refused';
    else if (result.status !== undefined && result.status < 500) {
      change.outcome = 'refused';
      this.#ledger.find('wrong', result.endedAt, `${method} ${code.key}: ${result.status} ${result.body}`);
    }
    if (result.status !== 200) await sleep(PAUSE_AFTER_FAILURE_MS);
  }

  /**
   * No other client changes the code, so its state is that of the last acknowledged change, or of a later unanswered
   * one.
   */
  async #read(code: TrackedCode): Promise<void> {
    const result = await this.#call(code.account, 'GET', `/qr-codes/${code.id}`);
    if (result.status !== 200) return;
    const { data } = JSON.parse(result.body) as { data: CodeJson };
    const number = numberIn(code.key, data.target_url) ?? -1;
    const last = code.changes.findLast(({ outcome }) => outcome === 'acknowledged')?.number ?? 0;
    const shown = code.changes[number];
    if (number < last || shown === undefined || shown.outcome === 'refused') {
      this.#ledger.find(
        'undone',
        result.endedAt,
        `${code.key} read as change ${number} after ${last} was acknowledged`,
      );
    }
  }

  async #call(
    { apiKey }: TortureAccount,
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RequestResult> {
    const url = `${this.#platform.gateways[this.#gateway]?.url}/api/v1${path}`;
    const result = await sendRequest(url, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      agent: this.#agent,
    });
    this.#ledger.count(result, `${method} ${path} at gateway ${this.#gateway}`);
    if (result.status === undefined) this.#gateway = (this.#gateway + 1) % this.#platform.gateways.length;
    return result;
  }
}
