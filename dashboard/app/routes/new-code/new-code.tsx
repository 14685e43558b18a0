import { useTransport } from '@connectrpc/connect-query';
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate, useRouter } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button, buttonLink } from '../../components/button.tsx';
import { focusFirstInvalid } from '../../components/focus.ts';
import { LandingPagePreview } from '../../components/landing-page/preview.tsx';
import { LeaveGuard } from '../../components/leave-guard.tsx';
import { Announced, Notice, Page, Section } from '../../components/page.tsx';
import { refreshCodes } from '../../data/code-lists.ts';
import { nameOfCode } from '../../data/code-names.ts';
import { useErrorText } from '../../data/error-text.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { isResultUnknown, useIdempotencyKeys } from '../../data/idempotency-key.ts';
import { useMayEnter } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { useIsLeft } from '../../data/use-is-left.ts';
import { useLatest } from '../../data/use-latest.ts';
import { useOneAtATime } from '../../data/use-one-at-a-time.ts';
import { useMessages } from '../../messages/index.ts';
import { ContentFields } from './content-fields.tsx';
import { type Created, createCode } from './create-code.ts';
import { type Draft, EMPTY_DRAFT, problemsOf } from './draft.ts';
import { FilingFields, PrintFields } from './filing.tsx';
import { KindChoice } from './kind-choice.tsx';
import styles from './new-code.module.css';
import { CodePreview } from './preview.tsx';

const PATH = '/codes/new';

/** Creates a code of any type; its image appears while one types. */
export function NewCode() {
  const { newCode, common, shell } = useMessages();
  const mayCreate = useMayEnter('editor');
  return (
    <Page title={newCode.title}>
      {mayCreate ? <NewCodeForm /> : <Notice>{common.notAllowed(shell.roles.editor)}</Notice>}
    </Page>
  );
}

function NewCodeForm() {
  const messages = useMessages();
  const { newCode, common, codes } = messages;
  const errorText = useErrorText();
  const [draft, setDraft] = useState<Draft>(EMPTY_DRAFT);
  const latest = useLatest(draft);
  const [wasSent, setSent] = useState(false);
  // The last code that was created while something else was typed.
  const [created, setCreated] = useState<Code>();
  const form = useRef<HTMLFormElement>(null);
  const creation = useCreation();
  const navigate = useNavigate();
  const { history } = useRouter();
  // This page is still shown while the next one is loaded, and again, as it was, after Back from there.
  const isLeft = useIsLeft(PATH);
  const oneAtATime = useOneAtATime();
  const problems = problemsOf(draft, messages);
  const errors = wasSent ? { ...Object.fromEntries(fieldErrors(creation.error, common.invalid)), ...problems } : {};
  const change = (changes: Partial<Draft>) => {
    // What the core said is about what was sent before.
    if (creation.isError && !isResultUnknown(creation.error)) creation.reset();
    setDraft({ ...draft, ...changes });
  };
  const submit = async () => {
    if (history.location.pathname !== PATH) return;
    setSent(true);
    setCreated(undefined);
    if (Object.values(problems).some((problem) => problem !== undefined)) return focusFirstInvalid(form.current);
    await creation.mutateAsync(draft, { onSuccess: show });
  };
  // Not called once the person has left the page, and may be entering something elsewhere.
  const show = ({ code }: Created) => {
    if (!code || history.location.pathname !== PATH) return;
    if (JSON.stringify(latest.current) !== JSON.stringify(draft)) {
      creation.reset();
      setSent(false);
      return setCreated(code);
    }
    // What was entered is a code now.
    void navigate({ to: '/codes/$codeId', params: { codeId: code.id }, ignoreBlocker: true });
  };
  const fields = { draft, onChange: change, errors };
  const isChanged = JSON.stringify({ ...draft, kind: EMPTY_DRAFT.kind }) !== JSON.stringify(EMPTY_DRAFT);
  return (
    <>
      <LeaveGuard isChanged={isChanged && !isLeft} />
      <form
        ref={form}
        noValidate
        className={styles.layout}
        onSubmit={(event) => {
          event.preventDefault();
          oneAtATime(submit);
        }}
      >
        <div className={styles.fields}>
          <KindChoice value={draft.kind} onChange={(kind) => change({ kind })} />
          <Section title={newCode.content}>
            <ContentFields {...fields} />
          </Section>
          <Section title={newCode.filing}>
            <FilingFields {...fields} />
          </Section>
          <Section title={newCode.print}>
            <PrintFields {...fields} />
          </Section>
        </div>
        <aside className={styles.preview} aria-label={newCode.preview}>
          <CodePreview draft={draft} />
          {draft.kind === 'landing_page' && <LandingPagePreview page={draft.page} />}
          {creation.isError && (
            <Notice look="danger">
              {isResultUnknown(creation.error) ? newCode.unknownResult : errorText(creation.error)}
            </Notice>
          )}
          <Announced>
            {created && (
              <Notice
                action={
                  <Link to="/codes/$codeId" params={{ codeId: created.id }} className={buttonLink.plain}>
                    {codes.panel.open}
                  </Link>
                }
              >
                {newCode.createdWithout(nameOfCode(created))}
              </Notice>
            )}
          </Announced>
          <Button type="submit" look="primary" isPending={creation.isPending}>
            {newCode.create}
          </Button>
        </aside>
      </form>
    </>
  );
}

/** Sends the draft; a second try after a broken connection does not create a second code. */
function useCreation() {
  const { newCode, rowSentence } = useMessages();
  const transport = useTransport();
  const keys = useIdempotencyKeys();
  return useMutation({
    mutationFn: (draft: Draft) => createCode(transport, draft, keys.keyFor(JSON.stringify(draft))),
    onSettled: (_created, error) => keys.ended(error ?? undefined),
    onSuccess: ({ code, warnings }: Created) => {
      void refreshCodes();
      if (!code) return;
      const sentences = [newCode.createdToast(code.name || code.shortCode), ...warnings.map(rowSentence)];
      showToast(sentences.join(' '), { kind: sentences.length === 1 ? 'done' : 'failed' });
    },
  });
}
