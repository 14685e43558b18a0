import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function Domains() {
  const { shell } = useMessages();
  return <Page title={shell.nav.domains}>{null}</Page>;
}
