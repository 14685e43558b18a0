/** Shows that the pages could not be loaded, in both languages: the texts of neither are there. */
export function showLoadFailed(root: HTMLElement): void {
  const texts = { en: 'Signpost could not be loaded.', de: 'Signpost konnte nicht geladen werden.' };
  const sentences = Object.entries(texts).map(([lang, text]) =>
    Object.assign(document.createElement('p'), { lang, textContent: text }),
  );
  const reload = document.createElement('button');
  reload.textContent = 'Reload · Neu laden';
  reload.addEventListener('click', () => location.reload());
  const main = document.createElement('main');
  main.append(...sentences, reload);
  root.replaceChildren(main);
}
