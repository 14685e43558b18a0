import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function Audit() {
  const { shell } = useMessages();
  return <Page title={shell.nav.audit}>{null}</Page>;
}
