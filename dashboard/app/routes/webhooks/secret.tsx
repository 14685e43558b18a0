import { ShownOnce } from '../../components/shown-once.tsx';
import { useSession } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';

/** The secret of an endpoint, which the core shows once. */
export function Secret({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  const {
    webhooks: { secret: texts },
  } = useMessages();
  const { publicUrl } = useSession();
  return (
    <ShownOnce title={texts.title} value={secret} label={texts.label} done={texts.done} onClose={onClose}>
      <p>{texts.text}</p>
      <p>
        <a href={`${publicUrl}/docs#webhooks`} target="_blank" rel="noreferrer">
          {texts.docs}
        </a>
      </p>
    </ShownOnce>
  );
}
