import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { sessionQuery, useSession } from '../../data/session.ts';
import { useAction } from '../../data/use-action.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './team.module.css';

/** Renames the account. */
export function AccountName() {
  const { team: texts } = useMessages();
  const { account } = useSession();
  const queries = useQueryClient();
  const [name, setName] = useState(account.name);
  const rename = useAction(AccountsService.method.renameAccount, { errors: 'caller', done: texts.renamed });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // What is wrong is shown at the field.
    void rename
      .run({ name })
      .then(() => queries.invalidateQueries({ queryKey: sessionQuery.queryKey }))
      .catch(() => undefined);
  };
  return (
    <Section title={texts.account}>
      <Panel>
        <form onSubmit={submit} className={styles.rename} noValidate>
          <Field label={texts.accountName} value={name} onChange={setName} error={rename.error} />
          <Button type="submit" isPending={rename.isPending} isDisabled={name.trim() === '' || name === account.name}>
            {texts.rename}
          </Button>
        </form>
      </Panel>
    </Section>
  );
}
