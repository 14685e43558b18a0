// The token is in the fragment, which browsers do not send; it leaves the address bar and the history at once.
function takeToken() {
  if (location.hash === '') return;
  document.querySelector('input[name=token]').value = location.hash.slice(1);
  history.replaceState(null, '', location.pathname);
}

takeToken();
// Another link opened in this tab loads nothing, as only the fragment differs.
addEventListener('hashchange', takeToken);
