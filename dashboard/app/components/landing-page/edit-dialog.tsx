import { create, equals } from '@bufbuild/protobuf';
import { useMutation } from '@connectrpc/connect-query';
import { useRef, useState } from 'react';
import { type Code, CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { LandingPageSchema } from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { refreshCodes } from '../../data/code-lists.ts';
import { useErrorText } from '../../data/error-text.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { useMessages } from '../../messages/index.ts';
import { Button } from '../button.tsx';
import { Actions, Dialog } from '../dialog.tsx';
import { focusFirstInvalid } from '../focus.ts';
import { ConfirmDiscard, LeaveGuard } from '../leave-guard.tsx';
import { Notice } from '../page.tsx';
import { showToast } from '../toasts.tsx';
import { LandingPageEditor } from './editor.tsx';
import { landingPageProblems } from './problems.ts';

interface EditLandingPageProps {
  /** A landing-page code. */
  readonly code: Code;
  readonly onClose: () => void;
}

/** A window that changes the page of a code. Saving can be undone for some seconds. */
export function EditLandingPage({ code, onClose }: EditLandingPageProps) {
  const messages = useMessages();
  const { common, landingPage } = messages;
  const errorText = useErrorText();
  const before = code.landingPage ?? create(LandingPageSchema);
  const [page, setPage] = useState(before);
  const [isAsking, setAsking] = useState(false);
  const isChanged = !equals(LandingPageSchema, page, before);
  const [wasSent, setSent] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const update = useMutation(CodesService.method.updateCode, {
    onSuccess: refreshCodes,
  });
  const problems = landingPageProblems(page, messages);
  const save = (saved: typeof page) =>
    update.mutateAsync({ id: code.id, updateMask: { paths: ['landing_page'] }, landingPage: saved });
  const submit = async () => {
    if (update.isPending) return;
    setSent(true);
    if (Object.keys(problems).length > 0) return focusFirstInvalid(form.current);
    try {
      if (isChanged) {
        await save(page);
        const undo = () => void save(before).catch((error: unknown) => showToast(errorText(error), { kind: 'failed' }));
        showToast(landingPage.saved, { undo });
      }
      onClose();
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
          errors={wasSent ? { ...Object.fromEntries(fieldErrors(update.error)), ...problems } : {}}
        />
        {update.isError && <Notice look="danger">{errorText(update.error)}</Notice>}
        <Actions>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button type="submit" look="primary" isPending={update.isPending}>
            {common.save}
          </Button>
        </Actions>
      </form>
      <ConfirmDiscard isOpen={isAsking} onClose={() => setAsking(false)} onDiscard={onClose} />
      <LeaveGuard isChanged={isChanged} />
    </Dialog>
  );
}
