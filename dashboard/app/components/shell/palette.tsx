import { useQuery } from '@connectrpc/connect-query';
import { keepPreviousData } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useState } from 'react';
import {
  Autocomplete,
  Collection,
  Dialog,
  Header,
  Input,
  ListBox,
  ListBoxItem,
  ListBoxSection,
  Modal,
  ModalOverlay,
  SearchField,
} from 'react-aria-components';
import { type Code, CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { useErrorText } from '../../data/error-text.ts';
import { useFirstMessages } from '../../messages/index.ts';
import styles from './palette.module.css';

const PAGES = {
  overview: '/',
  codes: '/codes',
  batches: '/batches',
  labels: '/folders-and-tags',
  domains: '/domains',
  webhooks: '/webhooks',
  api: '/api',
  team: '/team',
  audit: '/audit-log',
} as const;

/** The most codes that are offered. */
const MAX_CODES = 8;

/** Finds a page or a code by typing. */
export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const { common, shell } = useFirstMessages();
  const errorText = useErrorText();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const wanted = useDeferredValue(text.trim());
  const { data, error, isFetching, isPlaceholderData } = useQuery(
    CodesService.method.listCodes,
    { search: wanted, limit: MAX_CODES },
    { enabled: wanted !== '', placeholderData: keepPreviousData },
  );
  const pages = Object.entries(PAGES)
    .map(([key, to]) => ({ id: to, name: shell.nav[key as keyof typeof PAGES] }))
    .filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()));
  const found = wanted === '' ? [] : (data?.codes ?? []);
  // Until the answer is there, those that an earlier text found and this one will find too.
  const isLate = text.trim() !== wanted || isPlaceholderData;
  const codes = isLate ? found.filter((code) => hasText(code, text.trim())) : found;
  const open = (to: string) => {
    onClose();
    void navigate({ to });
  };
  return (
    <ModalOverlay isOpen isDismissable onOpenChange={(isOpen) => !isOpen && onClose()} className={styles.overlay}>
      <Modal className={styles.palette}>
        <Dialog aria-label={shell.palette.title} className={styles.dialog}>
          <Autocomplete inputValue={text} onInputChange={setText}>
            <SearchField aria-label={shell.palette.title} autoFocus>
              <Input placeholder={shell.palette.placeholder} className={styles.input} />
            </SearchField>
            <ListBox
              aria-label={shell.palette.title}
              className={styles.list}
              onAction={(key) => open(String(key))}
              renderEmptyState={() =>
                !error && <p className={styles.none}>{isFetching ? common.loading : shell.palette.none}</p>
              }
            >
              {codes.length > 0 && (
                <ListBoxSection>
                  <Header className={styles.heading}>{shell.palette.codes}</Header>
                  <Collection items={codes}>
                    {(code) => (
                      <ListBoxItem
                        id={`/codes/${code.id}`}
                        textValue={code.name || code.shortCode}
                        className={styles.item}
                      >
                        <strong>{code.name || code.shortCode}</strong>
                        <code>{code.shortCode}</code>
                        <span className={styles.target}>{code.targetUrl ?? ''}</span>
                      </ListBoxItem>
                    )}
                  </Collection>
                </ListBoxSection>
              )}
              {pages.length > 0 && (
                <ListBoxSection>
                  <Header className={styles.heading}>{shell.palette.pages}</Header>
                  <Collection items={pages}>
                    {({ id, name }) => (
                      <ListBoxItem id={id} className={styles.item}>
                        {name}
                      </ListBoxItem>
                    )}
                  </Collection>
                </ListBoxSection>
              )}
            </ListBox>
            {error && (
              <p role="alert" className={styles.failed}>
                {errorText(error)}
              </p>
            )}
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

function hasText({ name, shortCode, targetUrl }: Code, text: string): boolean {
  return [name, shortCode, targetUrl].some((each) => each?.toLowerCase().includes(text.toLowerCase()));
}
