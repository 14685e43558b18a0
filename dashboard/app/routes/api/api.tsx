import { useQuery } from '@connectrpc/connect-query';
import { BookOpen } from 'lucide-react';
import { BURST_LIMIT } from '../../../../common/contract/limits.ts';
import { AccountsService, type Usage } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { buttonLink } from '../../components/button.tsx';
import { Copyable, CopyButton } from '../../components/copy-button.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel, Section } from '../../components/page.tsx';
import { useFormat } from '../../data/format.ts';
import { useSession } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './api.module.css';
import { ApiKey } from './api-key.tsx';
import { RequestLog } from './request-log.tsx';

/** What programmers need: the key, how to call, the limits, and what was called. */
export function Api() {
  const { api: texts, shell } = useMessages();
  const { publicUrl } = useSession();
  const account = useQuery(AccountsService.method.getAccount, {});
  return (
    <Page
      title={shell.nav.api}
      subtitle={texts.intro}
      actions={
        <a href={`${publicUrl}/docs`} target="_blank" rel="noreferrer" className={buttonLink.plain}>
          <BookOpen aria-hidden size={16} />
          {texts.docs}
        </a>
      }
    >
      <div className={styles.columns}>
        <ApiKey />
        <Section title={texts.usage.title}>
          <Panel>
            <Loaded query={account}>{({ usage }) => usage && <Limits usage={usage} />}</Loaded>
          </Panel>
        </Section>
      </div>
      <Call />
      <RequestLog />
    </Page>
  );
}

function Call() {
  const { api: texts } = useMessages();
  const { publicUrl } = useSession();
  const base = `${publicUrl}/api/v1`;
  const example = `curl ${base}/qr-codes \\
  -H "Authorization: Bearer $SIGNPOST_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"target_url": "https://example.com/menu", "name": "Menu"}'`;
  return (
    <Section title={texts.call.title}>
      <Panel>
        <dl className={styles.facts}>
          <div>
            <dt>{texts.call.base}</dt>
            <dd>
              <Copyable text={base} what={texts.call.base} />
            </dd>
          </div>
        </dl>
        <div className={styles.example}>
          <h3>{texts.call.example}</h3>
          <CopyButton text={example} what={texts.call.example} label={texts.call.copyExample} />
        </div>
        <pre>{example}</pre>
      </Panel>
    </Section>
  );
}

function Limits({ usage }: { readonly usage: Usage }) {
  const {
    api: { usage: texts },
  } = useMessages();
  const format = useFormat();
  const used = (count: bigint, limit: bigint | undefined) =>
    limit === undefined ? texts.unlimited(format.number(count)) : texts.of(format.number(count), format.number(limit));
  return (
    <>
      <dl className={styles.facts}>
        {[
          [texts.requests, used(usage.requestsUsed, usage.monthlyQuota)],
          [texts.burst, format.number(BURST_LIMIT)],
          [texts.codes, used(usage.codesUsed, usage.codeLimit)],
          [texts.rows, format.number(usage.batchLimit)],
        ].map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd className="figures">{value}</dd>
          </div>
        ))}
      </dl>
      <p className={styles.note}>{texts.note}</p>
    </>
  );
}
