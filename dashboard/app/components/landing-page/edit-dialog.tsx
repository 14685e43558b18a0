import { create, equals } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { type Code, CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type LandingPage, LandingPageSchema } from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { refreshCodes } from '../../data/code-lists.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { showToast } from '../../data/toasts.ts';
import { transport } from '../../data/transport.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useLatest } from '../../data/use-latest.ts';
import { useUndo } from '../../data/use-undo.ts';
import { useMessages } from '../../messages/index.ts';
import { Button } from '../button.tsx';
import { Actions, Dialog } from '../dialog.tsx';
import { focusFirstInvalid } from '../focus.ts';
import { ConfirmDiscard, LeaveGuard } from '../leave-guard.tsx';
import { Notice } from '../page.tsx';
import { SaveFailed } from '../save-failed.tsx';
import { LandingPageEditor } from './editor.tsx';
import { landingPageProblems } from './problems.ts';

interface EditLandingPageProps {
  /** A landing-page code. */
  readonly code: Code;
  readonly onClose: () => void;
}

const client = createClient(CodesService, transport);

/**
 * Gives a code this page, and returns it as the core has stored it, also by an earlier call whose answer was lost. If
 * the code has another one than `expected` by now, it keeps that, which is returned as `other`: UpdateCode would
 * replace it.
 */
async function savePage(
  id: string,
  landingPage: LandingPage,
  expected: LandingPage,
): Promise<{ readonly saved: LandingPage } | { readonly other: LandingPage }> {
  const now = (await client.getCode({ id })).code?.landingPage;
  if (now && equals(LandingPageSchema, now, landingPage)) return { saved: now };
  if (now && !equals(LandingPageSchema, now, expected)) return { other: now };
  const { code } = await client.updateCode({ id, landingPage, updateMask: { paths: ['landing_page'] } });
  return { saved: code?.landingPage ?? landingPage };
}

/** A window that changes the page of a code. Saving can be undone for some seconds. */
export function EditLandingPage({ code, onClose }: EditLandingPageProps) {
  const messages = useMessages();
  const { common, landingPage } = messages;
  const undo = useUndo();
  const isMounted = useIsMounted();
  const [initial, setInitial] = useState(() => code.landingPage ?? create(LandingPageSchema));
  const [page, setPage] = useState(initial);
  const latest = useLatest(page);
  // The page that saving replaces: the one that the form began with, or another person's that the notice told of.
  const [replaced, setReplaced] = useState(initial);
  const [isAsking, setAsking] = useState(false);
  const isChanged = !equals(LandingPageSchema, page, initial);
  const [wasSent, setSent] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const save = useMutation({ mutationFn: () => savePage(code.id, page, replaced), onSuccess: refreshCodes });
  const problems = landingPageProblems(page, messages);
  const submit = async () => {
    if (save.isPending) return;
    setSent(true);
    if (Object.keys(problems).length > 0) return focusFirstInvalid(form.current);
    try {
      if (isChanged) {
        const result = await save.mutateAsync();
        if ('other' in result) return setReplaced(result.other);
        const takeBack = async () => {
          const undone = await savePage(code.id, replaced, result.saved);
          if ('other' in undone) showToast(landingPage.notUndone, { kind: 'failed' });
          await refreshCodes();
        };
        showToast(landingPage.saved, { undo: () => void undo(takeBack) });
        if (!equals(LandingPageSchema, latest.current, page)) {
          // What was typed meanwhile has not been sent: the form goes on from what was.
          setInitial(result.saved);
          setReplaced(result.saved);
          return;
        }
      }
      if (isMounted()) onClose();
    } catch {
      // Shown in the form, which keeps what was typed.
    }
  };
  return (
    <Dialog title={landingPage.edit} isOpen onClose={() => (isChanged ? setAsking(true) : onClose())} kind="wide">
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <LandingPageEditor
          value={page}
          onChange={setPage}
          errors={wasSent ? { ...Object.fromEntries(fieldErrors(save.error, common.invalid)), ...problems } : {}}
        />
        {save.isError && <SaveFailed code={code} error={save.error} onRestored={save.reset} />}
        {replaced !== initial && <Notice look="danger">{landingPage.conflict}</Notice>}
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button type="submit" look="primary" isPending={save.isPending}>
            {common.save}
          </Button>
        </Actions>
      </form>
      <ConfirmDiscard isOpen={isAsking} onClose={() => setAsking(false)} onDiscard={onClose} />
      <LeaveGuard isChanged={isChanged} />
    </Dialog>
  );
}
