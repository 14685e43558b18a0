import { useQuery } from '@connectrpc/connect-query';
import { DomainState, DomainsService } from '../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { useSession } from '../data/session.ts';
import { useMessages } from '../messages/index.ts';
import field from './field.module.css';
import { Notice } from './page.tsx';
import { Select } from './select.tsx';

const FOR_ONE_CODE: readonly DomainState[] = [DomainState.VERIFIED, DomainState.LIVE, DomainState.FAILING];
const FOR_A_BATCH: readonly DomainState[] = [DomainState.LIVE];

/** The account's domains on which codes may be created. Source: docs/contract.md, "Domains". */
function usePrintDomains(isForBatch: boolean) {
  const { data } = useQuery(DomainsService.method.listDomains, {});
  const states = isForBatch ? FOR_A_BATCH : FOR_ONE_CODE;
  return (data?.domains ?? []).filter(({ state }) => states.includes(state));
}

/** The start of scan URLs on a domain, `domain_…`, or on the platform's host if it is empty. */
export function useScanOrigin(domainId: string): string {
  const { publicUrl } = useSession();
  const domain = usePrintDomains(false).find(({ id }) => id === domainId);
  return domain ? `https://${domain.hostname}` : publicUrl.replace(/\/$/, '');
}

/** A scan URL with a placeholder for the short code, seven characters as short codes have them. */
export function placeholderScanUrl(origin: string): string {
  return `${origin}/r/preview`;
}

interface DomainSelectProps {
  /** `domain_…`; empty for the platform's host. */
  readonly value: string;
  readonly onChange: (id: string) => void;
  readonly isForBatch: boolean;
  readonly error?: string | undefined;
}

/** Chooses the domain of scan URLs among those on which codes may be created. */
export function DomainSelect({ value, onChange, isForBatch, error }: DomainSelectProps) {
  const { newCode } = useMessages();
  const { publicUrl } = useSession();
  const domains = usePrintDomains(isForBatch);
  const host = URL.parse(publicUrl)?.host ?? publicUrl;
  return (
    <div className={field.field}>
      <Select
        label={newCode.domain}
        options={[
          { id: '', label: newCode.platformDomain(host) },
          ...domains.map(({ id, hostname }) => ({ id, label: hostname })),
        ]}
        value={value}
        onChange={onChange}
      />
      <span className={field.description}>{newCode.domainHint}</span>
      {error !== undefined && <Notice look="danger">{error}</Notice>}
    </div>
  );
}
