/** Once errors are shown, the first field of a form that has one takes the focus. */
export function focusFirstInvalid(form: HTMLElement | null): void {
  setTimeout(() => form?.querySelector<HTMLElement>('[data-invalid] :is(input, textarea, button)')?.focus());
}
