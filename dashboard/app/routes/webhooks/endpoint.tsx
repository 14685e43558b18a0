import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function EndpointPage() {
  const { shell } = useMessages();
  return <Page title={shell.nav.webhooks}>{null}</Page>;
}
