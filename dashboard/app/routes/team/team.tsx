import { useQuery } from '@connectrpc/connect-query';
import { UserPlus } from 'lucide-react';
import { useState } from 'react';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel, Section } from '../../components/page.tsx';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import { AccountName } from './account-name.tsx';
import { AddMember } from './add-member.tsx';
import { CloseAccount } from './close-account.tsx';
import { Members } from './members.tsx';
import { Permissions } from './permissions.tsx';

/** The people of the account, what they may do, and the account itself. */
export function Team() {
  const { team: texts, shell } = useMessages();
  const mayChange = useMay('admin');
  const mayClose = useMay('owner');
  const [isAdding, setAdding] = useState(false);
  const members = useQuery(AccountsService.method.listMembers, {});
  return (
    <Page
      title={shell.nav.team}
      actions={
        mayChange && (
          <Button look="primary" icon={UserPlus} onPress={() => setAdding(true)}>
            {texts.add}
          </Button>
        )
      }
    >
      <Section title={texts.members}>
        <Loaded query={members}>{({ members }) => <Members members={members} />}</Loaded>
      </Section>
      {mayChange && <AccountName />}
      <Section title={texts.signIn.title}>
        <Panel>
          <p>{texts.signIn.provider}</p>
          <p>{texts.signIn.link}</p>
          <pre>signpost dashboard link --account acct_… --email …</pre>
        </Panel>
      </Section>
      <Permissions />
      {mayClose && <CloseAccount />}
      {isAdding && <AddMember onClose={() => setAdding(false)} />}
    </Page>
  );
}
