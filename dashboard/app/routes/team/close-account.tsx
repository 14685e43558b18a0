import { useState } from 'react';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { Checkbox } from '../../components/checkbox.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { useSession } from '../../data/session.ts';
import { useAction } from '../../data/use-action.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './team.module.css';

/** Closes the account for ever, for owners. */
export function CloseAccount() {
  const {
    team: { close: texts },
  } = useMessages();
  const { account } = useSession();
  const [isAsking, setAsking] = useState(false);
  const [deleteData, setDeleteData] = useState(false);
  const close = useAction(AccountsService.method.closeAccount);
  const run = async () => {
    await close.run({ deleteData });
    // Another account opens, or the sign-in page.
    location.assign('/');
  };
  return (
    <Section title={texts.title}>
      <Panel>
        <p>{texts.text}</p>
        <div>
          <Button look="danger" onPress={() => setAsking(true)}>
            {texts.action}
          </Button>
        </div>
      </Panel>
      <Confirm
        title={texts.ask(account.name)}
        isOpen={isAsking}
        onClose={() => {
          setAsking(false);
          setDeleteData(false);
        }}
        action={texts.action}
        name={account.name}
        onConfirm={run}
      >
        <div className={styles.close}>
          <p>{texts.text}</p>
          <Checkbox isSelected={deleteData} onChange={setDeleteData}>
            {texts.deleteData}
          </Checkbox>
        </div>
      </Confirm>
    </Section>
  );
}
