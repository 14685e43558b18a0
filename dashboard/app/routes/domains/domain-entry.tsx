import { RefreshCw, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { type Domain, DomainState, DomainsService } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Copyable } from '../../components/copy-button.tsx';
import { Panel, Status } from '../../components/page.tsx';
import { Table } from '../../components/table.tsx';
import { useRelativeTime } from '../../components/time.tsx';
import { useFormat } from '../../data/format.ts';
import { useSession } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { useAction } from '../../data/use-action.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './domains.module.css';

/** How the states are shown; one that these pages do not know yet is shown as waiting. */
function shownState(state: DomainState) {
  if (state === DomainState.LIVE) return { key: 'live', look: 'good' } as const;
  if (state === DomainState.FAILING) return { key: 'failing', look: 'danger' } as const;
  return { key: state === DomainState.VERIFIED ? 'verified' : 'pending', look: 'warning' } as const;
}

/** One domain: its state; while it is not live, what is missing and the records to set. */
export function DomainEntry({ domain, mayChange }: { readonly domain: Domain; readonly mayChange: boolean }) {
  const { domains: texts, common } = useMessages();
  const format = useFormat();
  const relativeTime = useRelativeTime();
  const { key, look } = shownState(domain.state);
  const isLive = domain.state === DomainState.LIVE;
  return (
    <Panel>
      <div className={styles.entry}>
        <div className={styles.heading}>
          <h2 className={styles.hostname}>{domain.hostname}</h2>
          <Status look={look}>{texts.states[key]}</Status>
          {domain.createdAt && (
            <span className={styles.added} title={format.exact(domain.createdAt)}>
              {texts.added(relativeTime(domain.createdAt))}
            </span>
          )}
        </div>
        {mayChange && <DomainActions domain={domain} />}
      </div>
      {isLive ? (
        <details>
          <summary>{texts.showRecords}</summary>
          <Records domain={domain} />
        </details>
      ) : (
        <>
          <p>{texts.explained[key]}</p>
          <Records domain={domain} />
          <p className={styles.problem}>
            {domain.problem === '' ? (
              texts.notChecked
            ) : (
              <>
                <strong>{texts.lastCheck}</strong> {common.coreSentence(domain.problem)}
              </>
            )}
          </p>
          <p className={styles.added}>{texts.automatic}</p>
        </>
      )}
    </Panel>
  );
}

function DomainActions({ domain: { id, hostname, state } }: { readonly domain: Domain }) {
  const { domains: texts } = useMessages();
  const [isRemoving, setRemoving] = useState(false);
  const verify = useAction(DomainsService.method.verifyDomain);
  const remove = useAction(DomainsService.method.removeDomain, { done: texts.removed(hostname) });
  const check = async () => {
    const { domain } = await verify.run({ id });
    showToast(domain?.state === DomainState.LIVE ? texts.checked.live(hostname) : texts.checked.waiting(hostname));
  };
  return (
    <div className={styles.actions}>
      {state !== DomainState.LIVE && (
        <Button
          icon={RefreshCw}
          isPending={verify.isPending}
          aria-label={texts.checkOf(hostname)}
          // Why it failed is shown as a message.
          onPress={() => void check().catch(() => undefined)}
        >
          {texts.check}
        </Button>
      )}
      <Button look="quiet" icon={Trash2} aria-label={texts.removeOf(hostname)} onPress={() => setRemoving(true)}>
        {texts.remove}
      </Button>
      <Confirm
        title={texts.removeTitle(hostname)}
        isOpen={isRemoving}
        onClose={() => setRemoving(false)}
        action={texts.remove}
        name={hostname}
        onConfirm={() => remove.run({ id })}
      >
        <ul className={styles.consequences}>
          {texts.removeText.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      </Confirm>
    </div>
  );
}

function Records({ domain: { hostname, txtName, txtValue } }: { readonly domain: Domain }) {
  const { domains: texts } = useMessages();
  const platform = new URL(useSession().publicUrl).hostname;
  return (
    <Table
      caption={texts.records(hostname)}
      keyOf={({ type }) => type}
      rows={[
        { type: 'TXT', name: txtName, value: txtValue, purpose: texts.proof },
        { type: 'CNAME', name: hostname, value: platform, purpose: texts.address },
      ]}
      columns={[
        {
          id: 'type',
          title: texts.type,
          cell: ({ type }) => <code className={styles.type}>{type}</code>,
          isRowHeader: true,
        },
        {
          id: 'name',
          title: texts.name,
          cell: ({ name, type }) => <Copyable text={name} what={`${texts.name} ${type}`} />,
        },
        {
          id: 'value',
          title: texts.value,
          cell: ({ value, type }) => <Copyable text={value} what={`${texts.value} ${type}`} />,
        },
        { id: 'purpose', title: texts.purpose, cell: ({ purpose }) => purpose },
      ]}
    />
  );
}
