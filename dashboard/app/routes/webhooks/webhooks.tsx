import { useQuery } from '@connectrpc/connect-query';
import { Link } from '@tanstack/react-router';
import { Plus, Webhook } from 'lucide-react';
import { useState } from 'react';
import { WebhooksService } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { Button } from '../../components/button.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Empty, Page } from '../../components/page.tsx';
import { Table } from '../../components/table.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import { EndpointForm } from './endpoint-form.tsx';
import { EndpointState } from './endpoint-state.tsx';

/** How often states are loaded again, in ms. */
const REFRESH_MS = 10_000;

/** The endpoints of the account. */
export function Webhooks() {
  const { webhooks: texts, shell, common } = useMessages();
  const mayChange = useMay('admin');
  const [isAdding, setAdding] = useState(false);
  const list = useQuery(WebhooksService.method.listEndpoints, {}, { refetchInterval: REFRESH_MS });
  const add = (
    <Button look="primary" icon={Plus} onPress={() => setAdding(true)}>
      {texts.add}
    </Button>
  );
  return (
    <Page
      title={shell.nav.webhooks}
      subtitle={texts.intro}
      actions={mayChange && list.data?.endpoints.length ? add : null}
    >
      <Loaded query={list}>
        {({ endpoints }) =>
          endpoints.length === 0 ? (
            <Empty icon={Webhook} title={texts.empty} action={mayChange && add}>
              {texts.emptyText}
            </Empty>
          ) : (
            <Table
              caption={shell.nav.webhooks}
              rows={endpoints}
              keyOf={({ id }) => id}
              columns={[
                {
                  id: 'url',
                  title: texts.url,
                  isRowHeader: true,
                  cell: ({ id, url }) => (
                    <Link to="/webhooks/$endpointId" params={{ endpointId: id }}>
                      {url}
                    </Link>
                  ),
                },
                { id: 'status', title: texts.status, cell: (endpoint) => <EndpointState endpoint={endpoint} /> },
                { id: 'events', title: texts.events, cell: ({ events }) => events.join(', ') },
                { id: 'created', title: common.created, cell: ({ createdAt }) => <RelativeTime instant={createdAt} /> },
              ]}
            />
          )
        }
      </Loaded>
      {isAdding && <EndpointForm onClose={() => setAdding(false)} />}
    </Page>
  );
}
