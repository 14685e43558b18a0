/** Once errors are shown, the first field of a form that has one takes the focus. */
export function focusFirstInvalid(form: HTMLElement | null): void {
  setTimeout(() => form?.querySelector<HTMLElement>('[data-invalid] :is(input, textarea, button)')?.focus());
}

/** Gives the focus to the page if what had it is gone: otherwise Tab would begin with the navigation again. */
export function catchFocus(): void {
  if (document.activeElement === document.body) document.getElementById('content')?.focus({ preventScroll: true });
}

/** Gives the focus to `next`, or else to the page, if what had it is gone by the next frame. */
export function passFocus(next: () => HTMLElement | null | undefined): void {
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) next()?.focus();
    catchFocus();
  });
}

/** The rows of a table or the entries of a list. */
export function rowsOf(list: Element | null | undefined): readonly HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>(':scope > tbody > tr, :scope > li') ?? [])];
}

/** One of them, for `passFocus`: a row that was added has the focus if the button that added it is gone. */
export function focusableRow(list: Element | null | undefined, index: number): HTMLElement | undefined {
  const row = rowsOf(list)[index];
  if (row) row.tabIndex = -1;
  return row;
}
