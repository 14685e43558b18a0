import { useQuery } from '@connectrpc/connect-query';
import { Globe, Plus } from 'lucide-react';
import { useState } from 'react';
import { DomainState, DomainsService } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { Button } from '../../components/button.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Empty, Page } from '../../components/page.tsx';
import { recoveryInterval } from '../../data/queries.ts';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import { AddDomain } from './add-domain.tsx';
import { DomainEntry } from './domain-entry.tsx';
import styles from './domains.module.css';

/** How often the list is loaded again while a domain is not live, in ms. The worker checks new ones every 30 s. */
const REFRESH_MS = 5_000;

/** Custom domains: their states, and the DNS records that they need. */
export function Domains() {
  const { domains: texts, shell } = useMessages();
  const mayChange = useMay('admin');
  const [isAdding, setAdding] = useState(false);
  const list = useQuery(
    DomainsService.method.listDomains,
    {},
    {
      refetchInterval: (query) =>
        query.state.data?.domains.some(({ state }) => state !== DomainState.LIVE)
          ? REFRESH_MS
          : recoveryInterval(query),
    },
  );
  const add = (
    <Button look="primary" icon={Plus} onPress={() => setAdding(true)}>
      {texts.add}
    </Button>
  );
  return (
    <Page
      title={shell.nav.domains}
      subtitle={texts.intro}
      actions={mayChange && list.data?.domains.length ? add : null}
    >
      <Loaded query={list}>
        {({ domains }) =>
          domains.length === 0 ? (
            <Empty icon={Globe} title={texts.empty} action={mayChange && add}>
              {texts.emptyText}
            </Empty>
          ) : (
            <ul className={styles.domains}>
              {domains.map((domain) => (
                <li key={domain.id}>
                  <DomainEntry domain={domain} mayChange={mayChange} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {isAdding && <AddDomain onClose={() => setAdding(false)} />}
    </Page>
  );
}
