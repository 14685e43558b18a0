// The token is in the fragment, which browsers do not send; it leaves the address bar and the history at once.
const token = location.hash.slice(1);
history.replaceState(null, '', location.pathname);
document.querySelector('input[name=token]').value = token;
