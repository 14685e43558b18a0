import { useQuery } from '@connectrpc/connect-query';
import { Link } from '@tanstack/react-router';
import { AccountsService } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { DomainsService } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { WebhooksService } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { useSession } from '../../data/session.ts';
import styles from './audit.module.css';

/** What was changed, by its name if it is in one of the short lists, else by its id; a link if it has a page. */
export function Subject({ id }: { readonly id: string }) {
  const { account } = useSession();
  const members = useQuery(AccountsService.method.listMembers, {}, { enabled: id.startsWith('mbr_') });
  const domains = useQuery(DomainsService.method.listDomains, {}, { enabled: id.startsWith('domain_') });
  const endpoints = useQuery(WebhooksService.method.listEndpoints, {}, { enabled: id.startsWith('hook_') });
  const name =
    members.data?.members.find((each) => each.id === id)?.email ??
    domains.data?.domains.find((each) => each.id === id)?.hostname ??
    endpoints.data?.endpoints.find((each) => each.id === id)?.url ??
    (id === account.id ? account.name : undefined);
  const text = name === undefined ? <code>{id}</code> : name;
  return (
    <span className={styles.subject} title={id}>
      {id.startsWith('qr_') ? (
        <Link to="/codes/$codeId" params={{ codeId: id }}>
          {text}
        </Link>
      ) : id.startsWith('hook_') ? (
        <Link to="/webhooks/$endpointId" params={{ endpointId: id }}>
          {text}
        </Link>
      ) : id.startsWith('batch_') ? (
        <Link to="/batches/$batchId" params={{ batchId: id }}>
          {text}
        </Link>
      ) : (
        text
      )}
    </span>
  );
}
