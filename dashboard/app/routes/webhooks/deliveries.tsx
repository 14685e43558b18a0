import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { RotateCw } from 'lucide-react';
import { Fragment, useState } from 'react';
import { SHOWN_ATTEMPTS } from '../../../../common/contract/ranges.ts';
import {
  type Delivery,
  DeliveryStatus,
  type Endpoint,
  WebhooksService,
} from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { LoadMore } from '../../components/load-more.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Section, Status } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import { Table } from '../../components/table.tsx';
import { RelativeTime, useRelativeTime } from '../../components/time.tsx';
import { serverNow } from '../../data/clock.ts';
import { useFormat } from '../../data/format.ts';
import { showToast } from '../../data/toasts.ts';
import { useAction } from '../../data/use-action.ts';
import { usePages } from '../../data/use-pages.ts';
import { useMessages } from '../../messages/index.ts';
import { AttemptStatus, Attempts } from './attempts.tsx';
import styles from './webhooks.module.css';

const FILTERS = {
  all: DeliveryStatus.UNSPECIFIED,
  pending: DeliveryStatus.PENDING,
  succeeded: DeliveryStatus.SUCCEEDED,
  failed: DeliveryStatus.FAILED,
} as const;
type Filter = keyof typeof FILTERS;

/** How often the loaded deliveries are loaded again, in ms: an older one may succeed, too. */
const REFRESH_MS = 5_000;

/** How far back failed deliveries are sent again, in ms: 30 days. The core keeps them for 90. */
const RESEND_MS = 30 * 24 * 60 * 60 * 1_000;

/** What was sent to an endpoint, newest first. */
export function Deliveries({ endpoint, mayChange }: { readonly endpoint: Endpoint; readonly mayChange: boolean }) {
  const { webhooks: texts, common } = useMessages();
  const format = useFormat();
  const [filter, setFilter] = useState<Filter>('all');
  const [opened, setOpened] = useState<Delivery>();
  const list = usePages(
    WebhooksService.method.listDeliveries,
    (cursor) => ({ endpointId: endpoint.id, status: FILTERS[filter], ...(cursor !== undefined && { cursor }) }),
    ({ nextCursor }) => nextCursor,
    REFRESH_MS,
  );
  const resend = useAction(WebhooksService.method.resendDelivery, { done: texts.resent });
  const deliveries = list.data?.pages.flatMap((page) => page.deliveries) ?? [];
  // One that has left the loaded list, as when its status no longer fits the filter, stays open.
  const open = opened && (deliveries.find(({ id }) => id === opened.id) ?? opened);
  return (
    <Section
      title={texts.deliveries}
      actions={
        <div className={styles.filters}>
          <Select
            label={texts.statusFilter}
            isLabelHidden
            value={filter}
            onChange={setFilter}
            options={Object.keys(FILTERS)
              .filter((each): each is Filter => each in FILTERS)
              .map((id) => ({ id, label: texts.statuses[id] }))}
          />
          {mayChange && <ResendFailed endpoint={endpoint} />}
        </div>
      }
    >
      <Loaded query={list}>
        {() =>
          deliveries.length === 0 ? (
            <p className={styles.note}>{texts.noDeliveries}</p>
          ) : (
            <Table
              caption={texts.deliveries}
              rows={deliveries}
              keyOf={({ id }) => id}
              columns={[
                {
                  id: 'event',
                  title: texts.event,
                  isRowHeader: true,
                  cell: (delivery) => (
                    <button type="button" className={styles.open} onClick={() => setOpened(delivery)}>
                      {delivery.eventType.split(/(?<=[._])/).map((part) => (
                        <Fragment key={part}>
                          {part}
                          <wbr />
                        </Fragment>
                      ))}
                    </button>
                  ),
                },
                { id: 'status', title: texts.status, cell: (delivery) => <State delivery={delivery} /> },
                {
                  id: 'answer',
                  title: texts.lastAnswer,
                  cell: ({ attempts }) => {
                    const last = attempts.at(-1);
                    return last ? <AttemptStatus attempt={last} /> : texts.none;
                  },
                },
                {
                  id: 'attempts',
                  title: texts.attempts,
                  isFigure: true,
                  cell: ({ attempts }) =>
                    `${format.number(attempts.length)}${attempts.length < SHOWN_ATTEMPTS ? '' : '+'}`,
                },
                { id: 'created', title: texts.created, cell: ({ createdAt }) => <RelativeTime instant={createdAt} /> },
                ...(mayChange
                  ? [
                      {
                        id: 'resend',
                        title: common.actions,
                        isActions: true,
                        cell: ({ id, eventType }: Delivery) => (
                          <Button
                            look="quiet"
                            icon={RotateCw}
                            isDisabled={!endpoint.enabled}
                            aria-label={texts.resendOf(eventType)}
                            onPress={() => void resend.run({ id }).catch(() => undefined)}
                          >
                            <span className={styles.resend}>{texts.resend}</span>
                          </Button>
                        ),
                      },
                    ]
                  : []),
              ]}
            />
          )
        }
      </Loaded>
      <LoadMore query={list} />
      <Dialog
        kind="side"
        title={open ? texts.details(open.eventType) : ''}
        isOpen={open !== undefined}
        onClose={() => setOpened(undefined)}
      >
        {open && <Attempts delivery={open} />}
      </Dialog>
    </Section>
  );
}

function State({ delivery: { status, nextAttemptAt } }: { readonly delivery: Delivery }) {
  const { webhooks: texts } = useMessages();
  const relativeTime = useRelativeTime();
  if (status === DeliveryStatus.SUCCEEDED) return <Status look="good">{texts.statuses.succeeded}</Status>;
  if (status === DeliveryStatus.FAILED) return <Status look="danger">{texts.statuses.failed}</Status>;
  return (
    <span>
      <Status>{texts.statuses.pending}</Status>
      {nextAttemptAt && timestampMs(nextAttemptAt) > serverNow() && (
        <span className={styles.note}> {texts.nextAttempt(relativeTime(nextAttemptAt))}</span>
      )}
    </span>
  );
}

function ResendFailed({ endpoint }: { readonly endpoint: Endpoint }) {
  const { webhooks: texts } = useMessages();
  const format = useFormat();
  const [isAsking, setAsking] = useState(false);
  const resend = useAction(WebhooksService.method.resendFailed);
  const run = async () => {
    const failed = { endpointId: endpoint.id, since: timestampFromMs(serverNow() - RESEND_MS) };
    let deliveries = 0;
    for (let more = true; more; ) {
      const resent = await resend.run(failed);
      deliveries += resent.deliveries;
      more = resent.more;
    }
    showToast(texts.resentFailed(deliveries, format.number(deliveries)));
  };
  return (
    <>
      <Button icon={RotateCw} isDisabled={!endpoint.enabled} onPress={() => setAsking(true)}>
        {texts.resendFailed}
      </Button>
      <Confirm
        title={texts.resendFailedTitle}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        action={texts.resendFailed}
        onConfirm={run}
      >
        {texts.resendFailedText}
      </Confirm>
    </>
  );
}
