import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import { timeJson } from '../common/contract/code-json.ts';
import { DELIVERY_STATUS_BY_NAME, type DeliveryStatusName, nameOf, namesOf } from '../common/contract/names.ts';
import type { Delivery, Endpoint } from '../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { connectCore, required, UsageError } from './core.ts';
import { destructive, example, expectConfirmed, ofAccount, paged, time } from './options.ts';
import { type DisplayRecord, fields, jsonOption, print, printRecord, table } from './output.ts';
import { type PageRange, readPages } from './pages.ts';

interface Which {
  readonly account: string;
  readonly id: string;
}

interface Changes extends Which {
  readonly url?: string;
  readonly events?: string[];
  readonly enable?: true;
  readonly disable?: true;
}

interface Listing extends Which, PageRange {
  readonly status?: DeliveryStatusName;
}

interface Resending {
  readonly account: string;
  readonly id?: string;
  readonly delivery?: string;
  readonly since?: Date;
}

/** `webhook …`: manages webhook endpoints and their deliveries. */
export function webhookCommands(program: Command): void {
  const json = jsonOption(program);
  const webhook = program.command('webhook').description('manage webhook endpoints and their deliveries');
  const command = (name: string, description: string) => ofAccount(webhook.command(name).description(description));
  const ofOne = (name: string, description: string) =>
    command(name, description).requiredOption('--id <id>', 'hook_…, the endpoint');

  const add = command('add', 'add an endpoint; its secret is shown here and never again');
  example(add, 'webhook add --account acct_… --url https://example.com/hook --events qr.created')
    .requiredOption('--url <url>', 'the https URL of the endpoint')
    .requiredOption('--events <types>', 'comma-separated event types, such as qr.created,bulk.completed', list)
    .action(async ({ account, url, events }: { account: string; url: string; events: string[] }) => {
      const { webhooks } = await connectCore(process.env, account);
      const { endpoint, secret } = await webhooks.createEndpoint({ url, events });
      const added = required(endpoint);
      const shown = { id: added.id, url: added.url, events: added.events, secret };
      print(json(), shown, () => fields({ ...shown, events: added.events.join(', ') }));
    });

  command('list', 'the endpoints of an account, newest first').action(async ({ account }: { account: string }) => {
    const { webhooks } = await connectCore(process.env, account);
    const { endpoints } = await webhooks.listEndpoints({});
    print(json(), endpoints.map(endpointShown), () => table(endpoints.map(endpointRow)));
  });

  ofOne('update', 'change an endpoint’s address or events, or switch it on or off')
    .option('--url <url>', 'the https URL of the endpoint')
    .option('--events <types>', 'comma-separated event types', list)
    .addOption(new Option('--enable', 'resume deliveries').conflicts('disable'))
    .option('--disable', 'stop deliveries; pending ones are dropped')
    .action(async ({ account, id, url, events, enable, disable }: Changes) => {
      const { webhooks } = await connectCore(process.env, account);
      const enabled = enable ?? (disable ? false : undefined);
      const { endpoint } = await webhooks.updateEndpoint({
        id,
        events: events ?? [],
        ...(url === undefined ? {} : { url }),
        ...(enabled === undefined ? {} : { enabled }),
      });
      print(json(), endpointShown(required(endpoint)), () => fields(endpointRow(required(endpoint))));
    });

  destructive(ofOne('remove', 'remove an endpoint and its pending deliveries')).action(
    async ({ account, id, yes }: Which & { yes: boolean }) => {
      await expectConfirmed({ yes }, `${id} is removed with its pending deliveries.`);
      const { webhooks } = await connectCore(process.env, account);
      await webhooks.deleteEndpoint({ id });
      print(json(), { id, deleted: true }, () => `${id} was removed.`);
    },
  );

  ofOne(
    'rotate-secret',
    'give it a new secret, shown only this once; requests are also signed with the old one for a day',
  ).action(async ({ account, id }: Which) => {
    const { webhooks } = await connectCore(process.env, account);
    const { secret } = await webhooks.rotateSecret({ id });
    printRecord(json(), { id, secret });
  });

  ofOne('test', 'send it a test event').action(async ({ account, id }: Which) => {
    const { webhooks } = await connectCore(process.env, account);
    const delivery = required((await webhooks.sendTestEvent({ id })).delivery);
    print(json(), deliveryShown(delivery), () => `${delivery.id} is on its way; webhook deliveries shows its answer.`);
  });

  paged(ofOne('deliveries', 'what it was sent and answered, newest first'), 'deliveries', 25)
    .addOption(
      new Option('--status <status>', 'only deliveries of this status').choices(namesOf(DELIVERY_STATUS_BY_NAME)),
    )
    .action(async ({ account, id, status, ...asked }: Listing) => {
      const { webhooks } = await connectCore(process.env, account);
      const of = { endpointId: id, ...(status === undefined ? {} : { status: DELIVERY_STATUS_BY_NAME[status] }) };
      const deliveries = await readPages(asked, async (page) => {
        const { deliveries: items, nextCursor } = await webhooks.listDeliveries({ ...of, ...page });
        return { items, nextCursor };
      });
      print(json(), deliveries.map(deliveryShown), () => table(deliveries.map(deliveryRow)));
    });

  command('resend', 'send a delivery again, or all of an endpoint that failed since a time')
    .option('--delivery <id>', 'dlv_…')
    .option('--id <id>', 'hook_…, the endpoint; with --since')
    .option('--since <time>', 'such as 2026-11-20T09:00:00Z', time)
    .action(async ({ account, id, delivery, since }: Resending) => {
      const { webhooks } = await connectCore(process.env, account);
      if (delivery !== undefined) {
        const sent = required((await webhooks.resendDelivery({ id: delivery })).delivery);
        print(json(), [deliveryShown(sent)], () => `${sent.id} is on its way.`);
      } else if (id !== undefined && since !== undefined) {
        const { deliveries } = await webhooks.resendFailed({ endpointId: id, since: timestampFromDate(since) });
        print(json(), { deliveries }, () => `Deliveries on their way: ${deliveries}.`);
      } else {
        throw new UsageError('Name one delivery by --delivery, or failed ones by --id and --since.');
      }
    });
}

function endpointShown(endpoint: Endpoint) {
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
  return { ...endpointShown(endpoint), events: endpoint.events.join(', ') };
}

function deliveryShown(delivery: Delivery) {
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

/** In tables only the last attempt is shown. */
function deliveryRow(delivery: Delivery): DisplayRecord {
  const { id, event_type, status, attempts, next_attempt_at } = deliveryShown(delivery);
  const last = attempts.at(-1);
  const answer = last && (last.status === 0 ? last.response : `${last.status} in ${last.latency_ms} ms`);
  return { id, event_type, status, attempts: attempts.length, last_answer: answer ?? null, next_attempt_at };
}

function list(text: string): string[] {
  return text.split(',').map((each) => each.trim());
}
