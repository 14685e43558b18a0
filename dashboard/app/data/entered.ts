let forms = 0;
let isDiscarded = false;

/** Notes that a form has something that was entered and not saved, until the returned function is called. */
export function noteEntered(): () => void {
  forms += 1;
  return () => {
    forms -= 1;
  };
}

/** Whether the page has something that was entered and not saved. */
export function isAnythingEntered(): boolean {
  return forms > 0 && !isDiscarded;
}

/** Gives up what was entered: the page is about to be left, without another question. */
export function discardEntered(): void {
  isDiscarded = true;
}
