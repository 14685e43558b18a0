import { timestampDate } from '@bufbuild/protobuf/wkt';
import { Download } from 'lucide-react';
import { useState } from 'react';
import { AccountsService, type AuditEntry } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { downloadCsv } from '../../components/charts/csv.ts';
import { Field } from '../../components/field.tsx';
import { LoadMore } from '../../components/load-more.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page } from '../../components/page.tsx';
import { Table } from '../../components/table.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useFormat } from '../../data/format.ts';
import { usePages } from '../../data/use-pages.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './audit.module.css';
import { Subject } from './subject.tsx';

const LIMIT = 100;

/** Who changed what, when. The core has no filters for it, so what is loaded is filtered. */
export function Audit() {
  const { audit: texts, shell } = useMessages();
  const format = useFormat();
  const sentence = useSentence();
  const [text, setText] = useState('');
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const list = usePages(
    AccountsService.method.listAuditEntries,
    (cursor) => ({ limit: LIMIT, ...(cursor !== undefined && { cursor }) }),
    ({ nextCursor }) => nextCursor,
  );
  const loaded = list.data?.pages.flatMap((page) => page.entries) ?? [];
  const wanted = text.trim().toLowerCase();
  const matches = (entry: AuditEntry) => {
    const { who, what } = sentence(entry);
    const day = localDay(entry);
    return (
      (from === '' || day >= from) &&
      (to === '' || day <= to) &&
      `${who} ${what} ${entry.action} ${entry.subject}`.toLowerCase().includes(wanted)
    );
  };
  const shown = loaded.filter(matches);
  const isFiltered = wanted !== '' || from !== '' || to !== '';
  const download = () =>
    downloadCsv('audit-log.csv', [
      ['at', 'actor', 'action', 'subject', 'id'],
      ...shown.map(({ at, actor, action, subject, id }) => [
        at ? timestampDate(at).toISOString() : '',
        actor,
        action,
        subject,
        id,
      ]),
    ]);
  return (
    <Page
      title={shell.nav.audit}
      subtitle={texts.intro}
      actions={
        <Button icon={Download} isDisabled={shown.length === 0} onPress={download}>
          {texts.csv}
        </Button>
      }
    >
      <div className={styles.filters}>
        <Field label={texts.filter} value={text} onChange={setText} placeholder={texts.filterNote} />
        <Field label={texts.from} value={from} onChange={setFrom} type="date" />
        <Field label={texts.to} value={to} onChange={setTo} type="date" />
      </div>
      {isFiltered && (
        <p role="status" className={styles.note}>
          {texts.searched(format.number(shown.length), format.number(loaded.length))}
        </p>
      )}
      <Loaded query={list}>
        {() =>
          shown.length === 0 ? (
            <p>{loaded.length === 0 ? texts.none : list.hasNextPage ? texts.noneFound : texts.noMatch}</p>
          ) : (
            <Table
              caption={shell.nav.audit}
              rows={shown}
              keyOf={({ id }) => id}
              columns={[
                { id: 'who', title: texts.who, isRowHeader: true, cell: (entry) => sentence(entry).who },
                { id: 'what', title: texts.what, cell: (entry) => sentence(entry).what },
                { id: 'subject', title: texts.subject, cell: ({ subject }) => <Subject id={subject} /> },
                { id: 'when', title: texts.when, cell: ({ at }) => <RelativeTime instant={at} /> },
                {
                  id: 'details',
                  title: texts.details,
                  cell: (entry) => (
                    <details className={styles.details}>
                      <summary>JSON</summary>
                      <pre>{json(entry)}</pre>
                    </details>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
      <LoadMore query={list} />
    </Page>
  );
}

/** Puts an entry in words: who, and what they did. */
function useSentence(): (entry: AuditEntry) => { readonly who: string; readonly what: string } {
  const { audit: texts } = useMessages();
  return ({ actor, action }) => ({
    who: actor === 'signpost' ? texts.signpost : actor === 'service' ? texts.service : actor,
    // A method that is newer than these pages has only its name.
    what: texts.actions[action] ?? action,
  });
}

function json({ id, at, actor, action, subject }: AuditEntry): string {
  return JSON.stringify({ id, at: at && timestampDate(at).toISOString(), actor, action, subject }, null, 2);
}

/** The day of an entry in the browser's time zone, `YYYY-MM-DD`, as date fields have it. */
function localDay({ at }: AuditEntry): string {
  if (!at) return '';
  const date = timestampDate(at);
  return [
    date.getFullYear(),
    String(date.getMonth() + 1).padStart(2, '0'),
    String(date.getDate()).padStart(2, '0'),
  ].join('-');
}
