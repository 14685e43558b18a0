import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function Batches() {
  const { shell } = useMessages();
  return <Page title={shell.nav.batches}>{null}</Page>;
}
