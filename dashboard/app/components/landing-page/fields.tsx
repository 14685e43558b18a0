import { create } from '@bufbuild/protobuf';
import { ArrowDown, ArrowUp, Plus, Trash2 } from 'lucide-react';
import { useRef } from 'react';
import {
  LandingLinkSchema,
  type LandingPage,
  LandingPageSchema,
} from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import { useMessages } from '../../messages/index.ts';
import { Button, IconButton } from '../button.tsx';
import { ColourField } from '../colour-field.tsx';
import { Field } from '../field.tsx';
import { passFocus } from '../focus.ts';
import { Notice } from '../page.tsx';
import styles from './landing-page.module.css';
import { MAX_LINKS, textColourProblem } from './problems.ts';

interface LandingPageFieldsProps {
  readonly value: LandingPage;
  readonly onChange: (page: LandingPage) => void;
  /** By the API's names: `landing_page.links[0].url`. */
  readonly errors: FieldErrors;
}

/** The fields of a landing page. */
export function LandingPageFields({ value, onChange, errors }: LandingPageFieldsProps) {
  const { landingPage } = useMessages();
  const change = (changes: Partial<LandingPage>) => onChange(create(LandingPageSchema, { ...value, ...changes }));
  const colourProblem = textColourProblem(value);
  return (
    <div className={styles.fields}>
      <Field
        label={landingPage.heading}
        value={value.title}
        onChange={(title) => change({ title })}
        error={errors['landing_page.title']}
        autoComplete="off"
      />
      <Field
        label={landingPage.text}
        value={value.text}
        onChange={(text) => change({ text })}
        error={errors['landing_page.text']}
        description={landingPage.textHint}
        rows={5}
        isOptional
      />
      <LinkFields links={value.links} onChange={(links) => change({ links })} errors={errors} />
      <div className={styles.pair}>
        <ColourField
          label={landingPage.background}
          value={value.backgroundColor}
          onChange={(backgroundColor) => change({ backgroundColor })}
          fallback="#f6f5f1"
        />
        <ColourField
          label={landingPage.textColour}
          value={value.foregroundColor}
          onChange={(foregroundColor) => change({ foregroundColor })}
          fallback="#1b1b18"
        />
      </div>
      <p className={styles.hint}>{landingPage.coloursHint}</p>
      {colourProblem && <Notice look="warning">{landingPage[colourProblem]}</Notice>}
    </div>
  );
}

interface LinkFieldsProps {
  readonly links: LandingPage['links'];
  readonly onChange: (links: LandingPage['links']) => void;
  readonly errors: FieldErrors;
}

function LinkFields({ links, onChange, errors }: LinkFieldsProps) {
  const { landingPage } = useMessages();
  const list = useRef<HTMLFieldSetElement>(null);
  const swap = (from: number, to: number) => {
    const moved = [...links];
    [moved[from], moved[to]] = [links[to], links[from]] as [LandingPage['links'][0], LandingPage['links'][0]];
    onChange(moved);
    // The focus goes with the link, so that another press moves it on.
    requestAnimationFrame(() => {
      const [up, down] = list.current?.querySelectorAll('li')[to]?.querySelectorAll('button') ?? [];
      (to < from ? [up, down] : [down, up]).find((button) => !button?.disabled)?.focus();
    });
  };
  const add = () => {
    onChange([...links, create(LandingLinkSchema)]);
    // Once it is shown, the new link is what one wants to fill in.
    setTimeout(() => list.current?.querySelector<HTMLElement>('li:last-child input')?.focus());
  };
  return (
    <fieldset ref={list} className={styles.links}>
      <legend>{landingPage.links}</legend>
      {links.length > 0 && (
        <ol className={styles.linkList}>
          {links.map((link, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a link is its position; its fields have no state of their own.
            <li key={index} className={styles.link}>
              <Field
                label={landingPage.linkLabel(index + 1)}
                value={link.label}
                onChange={(label) => onChange(links.with(index, create(LandingLinkSchema, { ...link, label })))}
                error={errors[`landing_page.links[${index}].label`]}
                autoComplete="off"
              />
              <Field
                label={landingPage.linkUrl(index + 1)}
                value={link.url}
                onChange={(url) => onChange(links.with(index, create(LandingLinkSchema, { ...link, url })))}
                error={errors[`landing_page.links[${index}].url`]}
                placeholder="https://"
                inputMode="url"
                autoComplete="off"
                mono
              />
              <div className={styles.linkActions}>
                <IconButton
                  icon={ArrowUp}
                  label={landingPage.moveUp(index + 1)}
                  isDisabled={index === 0}
                  onPress={() => swap(index, index - 1)}
                />
                <IconButton
                  icon={ArrowDown}
                  label={landingPage.moveDown(index + 1)}
                  isDisabled={index === links.length - 1}
                  onPress={() => swap(index, index + 1)}
                />
                <IconButton
                  icon={Trash2}
                  label={landingPage.remove(index + 1)}
                  onPress={() => {
                    onChange(links.toSpliced(index, 1));
                    passFocus(() => list.current?.querySelector<HTMLElement>(':scope > button'));
                  }}
                />
              </div>
            </li>
          ))}
        </ol>
      )}
      {links.length < MAX_LINKS && (
        <Button icon={Plus} onPress={add}>
          {landingPage.addLink}
        </Button>
      )}
    </fieldset>
  );
}
