import type { landingPage as en } from '../en/landing-page.ts';

export const landingPage: typeof en = {
  edit: 'Landingpage bearbeiten',
  heading: 'Überschrift',
  text: 'Text',
  textHint: 'Zeilenumbrüche bleiben erhalten. Alles wird wörtlich gezeigt, nie als Markup.',
  links: 'Links',
  linkLabel: (position) => `Link ${position}: Text`,
  linkUrl: (position) => `Link ${position}: Adresse`,
  addLink: 'Link hinzufügen',
  moveUp: (position) => `Link ${position} nach oben`,
  moveDown: (position) => `Link ${position} nach unten`,
  remove: (position) => `Link ${position} entfernen`,
  textColour: 'Textfarbe',
  background: 'Seitenhintergrund',
  coloursHint: 'Ohne Hintergrundfarbe ist die Seite hell oder dunkel wie das Telefon.',
  illegible:
    'Die Textfarbe hat zu wenig Kontrast. Stattdessen wird Schwarz oder Weiß verwendet, je nachdem, was besser lesbar ist.',
  needsBackground: 'Die Textfarbe wird nur zusammen mit einem Hintergrund verwendet.',
  preview: 'Vorschau auf dem Telefon',
  previewTheme: 'Telefon',
  themes: { light: 'Hell', dark: 'Dunkel' },
  untitled: 'Überschrift',
  saved: 'Die Landingpage wurde gespeichert. Scans zeigen sie ab sofort.',
  notUndone: 'Jemand anderes hat diese Seite inzwischen geändert. Sie bleibt, wie sie jetzt ist.',
  conflict:
    'Jemand anderes hat diese Seite inzwischen geändert. Ihre Eingaben stehen noch hier; beim Speichern ersetzen sie die andere Änderung.',
  problems: {
    title: 'Bitte geben Sie eine Überschrift mit höchstens 200 Zeichen ein.',
    oneLine: 'Das muss eine einzige Zeile sein.',
    text: 'Der Text hat höchstens 5.000 Zeichen.',
    controlCharacters: 'Der Text darf keine Steuerzeichen enthalten.',
    label: 'Bitte geben Sie einen Text mit höchstens 100 Zeichen ein.',
    links: 'Eine Seite hat höchstens 20 Links.',
  },
};
