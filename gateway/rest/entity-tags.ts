/** An entity tag, weak or strong, or `*`. Source: RFC 9110 §13.1.2. */
const ENTITY_TAG = /(?:W\/)?("[^"]*")|\*/g;

/** The entity tags of an `If-None-Match`, each once, without the mark of weak ones. */
export function entityTags(field = ''): string[] {
  return [...new Set(Array.from(field.matchAll(ENTITY_TAG), ([any, tag]) => tag ?? any))];
}

/** Whether an `If-None-Match` names the strong tag of what would be sent, as a strong or a weak one. */
export function isCurrent(tag: string, field: string | undefined): boolean {
  const known = entityTags(field);
  return known.includes(tag) || known.includes('*');
}
