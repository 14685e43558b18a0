import { setTimeout } from 'node:timers/promises';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import { timeJson } from '../common/contract/code-json.ts';
import { DELIVERY_STATUS_BY_NAME, type DeliveryStatusName, nameOf, namesOf } from '../common/contract/names.ts';
import { SHOWN_ATTEMPTS } from '../common/contract/ranges.ts';
import { requiredField } from '../common/contract/required-field.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import type { Delivery, Endpoint } from '../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import type { CoreClients } from './clients.ts';
import { connectCore, UsageError } from './core.ts';
import { exitUnfulfilled } from './exit-codes.ts';
import { destructive, example, expectConfirmed, ofAccount, paged, splitList, time } from './options.ts';
import { type DisplayRecord, fields, jsonOption, print, printRecord, table } from './output.ts';
import { type PageRange, readPages } from './pages.ts';
import { withProgress } from './progress.ts';

/** An endpoint has 15 s for its response, and the delivery may have to wait for its turn. */
const MAX_WAIT_MS = 30_000;
const POLL_MS = 100;

interface EndpointOptions {
  readonly account: string;
  readonly id: string;
}

interface UpdateOptions extends EndpointOptions {
  readonly url?: string;
  readonly events?: string[];
  readonly enable?: true;
  readonly disable?: true;
}

interface ListOptions extends EndpointOptions, PageRange {
  readonly status?: DeliveryStatusName;
}

interface ResendOptions {
  readonly account: string;
  readonly id?: string;
  readonly delivery?: string;
  readonly since?: Date;
}

/** `webhook …`: manages webhook endpoints and their deliveries. */
export function webhookCommands(webhook: Command): void {
  const json = jsonOption(webhook);
  const command = (name: string, description: string) => ofAccount(webhook.command(name).description(description));
  const endpointCommand = (name: string, description: string) =>
    command(name, description).requiredOption('--id <id>', 'hook_…, the endpoint');

  const add = command('add', 'add an endpoint; its secret is shown only once');
  example(add, 'webhook add --account acct_… --url https://example.com/hook --events qr.created')
    .requiredOption('--url <url>', 'the https URL of the endpoint')
    .requiredOption(
      '--events <types>',
      'comma-separated event types, such as qr.created,bulk.completed; see docs/events.md',
      splitList,
    )
    .action(async ({ account, url, events }: { account: string; url: string; events: string[] }) => {
      const { webhooks } = await connectCore(process.env, account);
      const { endpoint, secret } = await webhooks.createEndpoint({ url, events });
      const added = requiredField(endpoint, 'endpoint');
      const shown = { id: added.id, url: added.url, events: added.events, secret };
      print(json(), shown, () => fields({ ...shown, events: added.events.join(', ') }));
    });

  command('list', 'list the endpoints of an account, newest first').action(async ({ account }: { account: string }) => {
    const { webhooks } = await connectCore(process.env, account);
    const { endpoints } = await webhooks.listEndpoints({});
    print(json(), endpoints.map(endpointJson), () => table(endpoints.map(endpointRow)));
  });

  endpointCommand('update', 'change an endpoint’s URL or events, or enable or disable it')
    .option('--url <url>', 'the https URL of the endpoint')
    .option('--events <types>', 'comma-separated event types', splitList)
    .addOption(new Option('--enable', 'resume deliveries').conflicts('disable'))
    .option('--disable', 'stop deliveries; pending ones fail')
    .action(async ({ account, id, url, events, enable, disable }: UpdateOptions) => {
      const enabled = enable ?? (disable ? false : undefined);
      if ((url ?? events ?? enabled) === undefined) {
        throw new UsageError('Give at least one of --url, --events, --enable and --disable.');
      }
      const { webhooks } = await connectCore(process.env, account);
      const { endpoint } = await webhooks.updateEndpoint({
        id,
        events: events ?? [],
        ...(url === undefined ? {} : { url }),
        ...(enabled === undefined ? {} : { enabled }),
      });
      print(json(), endpointJson(requiredField(endpoint, 'endpoint')), () =>
        fields(endpointRow(requiredField(endpoint, 'endpoint'))),
      );
    });

  destructive(endpointCommand('remove', 'remove an endpoint and its deliveries')).action(
    async ({ account, id, yes }: EndpointOptions & { yes: boolean }) => {
      await expectConfirmed({ yes }, `${id} will be removed with its deliveries.`);
      const { webhooks } = await connectCore(process.env, account);
      await webhooks.deleteEndpoint({ id });
      print(json(), { id, deleted: true }, () => `${id} was removed.`);
    },
  );

  endpointCommand(
    'rotate-secret',
    'replace the endpoint’s secret; the new one is shown only once, and the old one stays valid for a day',
  ).action(async ({ account, id }: EndpointOptions) => {
    const { webhooks } = await connectCore(process.env, account);
    const { secret } = await webhooks.rotateSecret({ id });
    printRecord(json(), { id, secret });
  });

  endpointCommand('test', 'send a test event to an endpoint, and wait for the response').action(
    async ({ account, id }: EndpointOptions, command: Command) => {
      const { webhooks } = await connectCore(process.env, account);
      const sent = requiredField((await webhooks.sendTestEvent({ id })).delivery, 'delivery');
      const delivery = await attempted(webhooks, sent, command, json());
      print(json(), deliveryJson(delivery), () => fields(deliveryRow(delivery)));
    },
  );

  paged(
    endpointCommand('deliveries', 'list the deliveries to an endpoint and its responses, newest first'),
    'deliveries',
    25,
  )
    .addOption(
      new Option('--status <status>', 'only deliveries of this status').choices(namesOf(DELIVERY_STATUS_BY_NAME)),
    )
    .action(async ({ account, id, status, ...range }: ListOptions, command: Command) => {
      const { webhooks } = await connectCore(process.env, account);
      const filter = { endpointId: id, ...(status === undefined ? {} : { status: DELIVERY_STATUS_BY_NAME[status] }) };
      const deliveries = await readPages(range, { json: json(), what: 'deliveries', command }, async (page) => {
        const { deliveries: items, nextCursor } = await webhooks.listDeliveries({ ...filter, ...page });
        return { items, nextCursor };
      });
      print(json(), deliveries.map(deliveryJson), () => table(deliveries.map(deliveryRow)));
    });

  command(
    'resend',
    'send a delivery again and wait for the response, or all failed deliveries to an endpoint created since a time',
  )
    .addOption(new Option('--delivery <id>', 'dlv_…').conflicts(['id', 'since']))
    .option('--id <id>', 'hook_…, the endpoint; requires --since')
    .option(
      '--since <time>',
      'resend failed deliveries created since then, such as 2026-11-20T09:00:00Z; requires --id',
      time,
    )
    .action(async ({ account, id, delivery, since }: ResendOptions, command: Command) => {
      const { webhooks } = await connectCore(process.env, account);
      if (delivery !== undefined) {
        const sent = requiredField((await webhooks.resendDelivery({ id: delivery })).delivery, 'delivery');
        const again = await attempted(webhooks, sent, command, json());
        print(json(), [deliveryJson(again)], () => fields(deliveryRow(again)));
      } else if (id !== undefined && since !== undefined) {
        let deliveries = 0;
        try {
          await withProgress({ json: json(), what: 'Resending deliveries' }, async (update) => {
            for (let more = true; more; update(deliveries)) {
              const resent = await webhooks.resendFailed({ endpointId: id, since: timestampFromDate(since) });
              deliveries += resent.deliveries;
              more = resent.more;
            }
          });
        } catch (error) {
          if (deliveries > 0) console.error(`${deliveries} deliveries were queued again before this failed:`);
          throw error;
        }
        print(json(), { deliveries }, () => `Deliveries that will be sent again: ${deliveries}.`);
      } else {
        throw new UsageError('Specify one delivery with --delivery, or failed ones with --id and --since.');
      }
    });
}

/**
 * Waits for the response to a delivery that was sent just now, also while the core is unavailable. Unless the endpoint
 * accepts the delivery, the command is unfulfilled.
 */
async function attempted(
  webhooks: CoreClients['webhooks'],
  sent: Delivery,
  command: Command,
  json: boolean,
): Promise<Delivery> {
  const known = sent.attempts.at(-1)?.at;
  const shows = `webhook deliveries --id ${sent.endpointId} shows it.`;
  /** Why the core did not say at the last time of asking what became of the delivery. */
  let problem: string | undefined;
  const delivery = await withProgress({ json, what: 'Waiting for the response' }, async () => {
    const deadline = Date.now() + MAX_WAIT_MS;
    for (; Date.now() < deadline; await setTimeout(POLL_MS)) {
      try {
        const request = { deliveryId: sent.id, limit: 1 };
        const timeoutMs = Math.max(1_000, deadline - Date.now());
        const { delivery, attempts } = await webhooks.listAttempts(request, { timeoutMs });
        problem = undefined;
        const latest = attempts[0]?.at;
        if (latest && (!known || timestampDate(latest) > timestampDate(known)))
          return requiredField(delivery, 'delivery');
      } catch (error) {
        const { isTemporary, rejectionSentence } = await import('./rejection.ts');
        problem = rejectionSentence(error, command);
        if (!isTemporary(error)) throw new OperatorError(`${problem} The delivery ${sent.id} was queued; ${shows}`);
      }
    }
    return sent;
  });
  const last = delivery.attempts.at(-1);
  if (delivery === sent) {
    exitUnfulfilled();
    console.error(
      problem === undefined
        ? `The delivery ${sent.id} is still waiting; ${shows} Is a core with the role worker running?`
        : `The delivery ${sent.id} was queued, but its response can't be read; ${shows} ${problem}`,
    );
  } else if (last === undefined || last.status < 200 || last.status > 299) {
    exitUnfulfilled();
  }
  return delivery;
}

function endpointJson(endpoint: Endpoint) {
  const { id, url, events, enabled, disabledReason, verifiedAt, failingSince, createdAt } = endpoint;
  return {
    id,
    url,
    events,
    enabled,
    disabled_reason: disabledReason || null,
    verified_at: verifiedAt ? timeJson(verifiedAt) : null,
    failing_since: failingSince ? timeJson(failingSince) : null,
    created_at: timeJson(createdAt),
  };
}

function endpointRow(endpoint: Endpoint): DisplayRecord {
  return { ...endpointJson(endpoint), events: endpoint.events.join(', ') };
}

function deliveryJson(delivery: Delivery) {
  const { id, endpointId, eventId, eventType, nextAttemptAt, createdAt } = delivery;
  return {
    id,
    endpoint_id: endpointId,
    event_id: eventId,
    event_type: eventType,
    status: nameOf(DELIVERY_STATUS_BY_NAME, delivery.status),
    next_attempt_at: nextAttemptAt ? timeJson(nextAttemptAt) : null,
    created_at: timeJson(createdAt),
    attempts: delivery.attempts.map(({ at, status, latencyMs, response }) => ({
      at: timeJson(at),
      status,
      latency_ms: latencyMs,
      response,
    })),
  };
}

/** Tables show only the last attempt. */
function deliveryRow(delivery: Delivery): DisplayRecord {
  const { id, event_type, status, attempts, next_attempt_at } = deliveryJson(delivery);
  const last = attempts.at(-1);
  const lastResponse = last && (last.status === 0 ? last.response : `${last.status} in ${last.latency_ms} ms`);
  const count = attempts.length < SHOWN_ATTEMPTS ? attempts.length : `${attempts.length}+`;
  return { id, event_type, status, attempts: count, last_answer: lastResponse ?? null, next_attempt_at };
}
