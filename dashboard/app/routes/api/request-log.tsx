import { useState } from 'react';
import { AccountsService, type ApiRequest } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Field } from '../../components/field.tsx';
import { LoadMore } from '../../components/load-more.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Section, Status } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import { Table } from '../../components/table.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useFormat } from '../../data/format.ts';
import { usePages } from '../../data/use-pages.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './api.module.css';

const CLASSES = ['0', '2', '3', '4', '5'] as const;
type StatusClass = (typeof CLASSES)[number];

const LIMIT = 50;

/** The last requests with the account's key. */
export function RequestLog() {
  const {
    api: { log: texts },
  } = useMessages();
  const format = useFormat();
  const [statusClass, setStatusClass] = useState<StatusClass>('0');
  const [id, setId] = useState('');
  const list = usePages(
    AccountsService.method.listApiRequests,
    (cursor) => ({
      limit: LIMIT,
      statusClass: Number(statusClass),
      requestId: id.trim(),
      ...(cursor !== undefined && { cursor }),
    }),
    ({ nextCursor }) => nextCursor,
  );
  const requests = list.data?.pages.flatMap((page) => page.requests) ?? [];
  const isFiltered = statusClass !== '0' || id.trim() !== '';
  const label = (each: StatusClass) => (each === '0' ? texts.all : texts.classes[each]);
  return (
    <Section title={texts.title}>
      <p className={styles.note}>{texts.note}</p>
      <div className={styles.filters}>
        <Select
          label={texts.status}
          value={statusClass}
          onChange={setStatusClass}
          options={CLASSES.map((each) => ({ id: each, label: label(each) }))}
        />
        <Field label={texts.id} value={id} onChange={setId} placeholder={texts.idNote} maxLength={128} mono />
      </div>
      <Loaded query={list}>
        {() =>
          requests.length === 0 ? (
            <p>{isFiltered ? texts.noneFound : texts.none}</p>
          ) : (
            <Table
              caption={texts.title}
              rows={requests}
              keyOf={(request) => request.id}
              columns={[
                {
                  id: 'request',
                  title: texts.request,
                  isRowHeader: true,
                  cell: ({ method, path }) => (
                    <code>
                      {method} {path}
                    </code>
                  ),
                },
                { id: 'status', title: texts.status, cell: (request) => <Answer request={request} /> },
                { id: 'time', title: texts.time, cell: ({ at }) => <RelativeTime instant={at} /> },
                {
                  id: 'duration',
                  title: texts.duration,
                  isFigure: true,
                  cell: ({ durationMs }) => texts.ms(format.number(durationMs)),
                },
                { id: 'id', title: texts.id, cell: ({ requestId }) => <code>{requestId}</code> },
              ]}
            />
          )
        }
      </Loaded>
      <LoadMore query={list} />
    </Section>
  );
}

function Answer({ request: { status, reason } }: { readonly request: ApiRequest }) {
  const look = status < 400 ? 'good' : status < 500 ? 'warning' : 'danger';
  return (
    <Status look={look}>
      {status} {reason && <code className={styles.note}>{reason}</code>}
    </Status>
  );
}
