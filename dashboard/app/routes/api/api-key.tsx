import { useQuery } from '@connectrpc/connect-query';
import { KeyRound } from 'lucide-react';
import { useState } from 'react';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { StayGuard } from '../../components/leave-guard.tsx';
import { Notice, Panel, Section } from '../../components/page.tsx';
import { ShownOnce } from '../../components/shown-once.tsx';
import { useMay, useSession } from '../../data/session.ts';
import { useAction } from '../../data/use-action.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './api.module.css';

/** The account's key: owners replace and revoke it. */
export function ApiKey() {
  const {
    api: { key: texts },
  } = useMessages();
  const { account } = useSession();
  const { data } = useQuery(AccountsService.method.getAccount, {});
  const isOwner = useMay('owner');
  const [asked, setAsked] = useState<'rotate' | 'revoke'>();
  const [key, setKey] = useState<string>();
  const rotate = useAction(AccountsService.method.rotateKey, { unknown: texts.rotateUnknown });
  const revoke = useAction(AccountsService.method.revokeKey, { done: texts.revoked });
  const close = () => setAsked(undefined);
  return (
    <Section title={texts.title}>
      <StayGuard isNeeded={rotate.isRunning} />
      <Panel>
        <p>{texts.text}</p>
        {data?.features?.api === false && <Notice>{texts.noApi}</Notice>}
        {isOwner ? (
          <div className={styles.buttons}>
            <Button icon={KeyRound} onPress={() => setAsked('rotate')}>
              {texts.rotate}
            </Button>
            <Button look="danger" onPress={() => setAsked('revoke')}>
              {texts.revoke}
            </Button>
          </div>
        ) : (
          <p className={styles.note}>{texts.ownersOnly}</p>
        )}
      </Panel>
      <Confirm
        title={texts.rotateTitle}
        isOpen={asked === 'rotate'}
        onClose={close}
        action={texts.rotate}
        name={account.name}
        onConfirm={async () => setKey((await rotate.run({})).apiKey)}
      >
        <Consequences texts={texts.rotateText} />
      </Confirm>
      <Confirm
        title={texts.revokeTitle}
        isOpen={asked === 'revoke'}
        onClose={close}
        action={texts.revoke}
        name={account.name}
        onConfirm={() => revoke.run({})}
      >
        <Consequences texts={texts.revokeText} />
      </Confirm>
      {key !== undefined && (
        <ShownOnce
          title={texts.newTitle}
          value={key}
          label={texts.label}
          done={texts.done}
          onClose={() => setKey(undefined)}
        >
          <p>{texts.newText}</p>
        </ShownOnce>
      )}
    </Section>
  );
}

function Consequences({ texts }: { readonly texts: readonly string[] }) {
  return (
    <ul className={styles.consequences}>
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}
