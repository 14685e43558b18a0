/** An identifier of a heading: `First code` becomes `first-code`. */
export function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\d]+/gu, '-')
    .replace(/^-|-$/g, '');
}

/** Line icons, on a grid of 24 units. */
const ICONS = {
  copy: '<rect x="8" y="8" width="13" height="13" rx="2"/><path d="M16 8V5a2 2 0 0 0-2-2H5a2 2 0 0 0-2 2v9a2 2 0 0 0 2 2h3"/>',
  menu: '<path d="M4 6h16M4 12h16M4 18h16"/>',
  moon: '<path d="M20 14.5A8.5 8.5 0 1 1 9.5 4a6.8 6.8 0 0 0 10.5 10.5z"/>',
  signpost: '<path d="M12 22.5v-18M12 5.2h6.8l2.2 2.7-2.2 2.6H12zM12 12H5.2L3 14.6l2.2 2.7H12z"/>',
} as const;

/** An icon; the text beside it says what it means. */
export function icon(name: keyof typeof ICONS): string {
  return `<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${ICONS[name]}</svg>`;
}
