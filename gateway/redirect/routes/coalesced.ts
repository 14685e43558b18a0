/**
 * The time from one commit of a process to its next, in ms, while several changes are in progress: a commit takes 0.2
 * ms of processor time and some ms of the event loop, whether it has one route or twenty.
 */
const COMMIT_MS = 5;

/**
 * Returns a function that collects items for `work`, which takes them once it can, and resolves when it is done with
 * them. Work starts at the end of the event loop iteration, or `COMMIT_MS` after it last took items if all items may
 * wait.
 */
export function coalesced<Item>(
  work: (take: () => Item[]) => Promise<void>,
): (item: Item, mayWait?: boolean) => Promise<void> {
  const items: Item[] = [];
  let next: Promise<void> | undefined;
  let notBefore = 0;
  let start = () => {};

  async function run(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, notBefore - performance.now()));
      start = () => {
        clearTimeout(timer);
        setImmediate(resolve);
      };
    });
    await work(() => {
      next = undefined;
      notBefore = performance.now() + COMMIT_MS;
      return items.splice(0);
    });
  }

  return (item, mayWait = false) => {
    next ??= run();
    items.push(item);
    if (!mayWait || notBefore <= performance.now()) start();
    return next;
  };
}
