// Puts the page together: a change of the settings is asked after a pause.

const PAUSE_MS = 150;

let pause = null;
const form = buildForm(() => {
  clearTimeout(pause);
  pause = setTimeout(renew, PAUSE_MS);
});

function renew() {
  const settings = form.read();
  history.replaceState(null, "", toAddress(settings));
  ask(settings);
}

/** Shows settings of elsewhere, and asks for them. */
function use(settings) {
  clearTimeout(pause);
  form.write(settings);
  renew();
}

async function save() {
  const text = await textOf(await post("file", "application/json", JSON.stringify(form.read())));
  const address = URL.createObjectURL(new Blob([text], { type: "application/toml" }));
  element("a", { href: address, download: OFFER.file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

async function load(file) {
  use(JSON.parse(await textOf(await post("settings", "application/toml", file))));
}

const attempt = (action) => action.catch((error) => tellProblem(error.message));

document.getElementById("save").addEventListener("click", () => attempt(save()));
document.getElementById("load").addEventListener("change", ({ target }) => {
  const [file] = target.files;
  // The same file can be loaded again.
  if (file) attempt(load(file)).finally(() => { target.value = ""; });
});
document.getElementById("jump").addEventListener("click", () => nodes.answer.scrollIntoView());
document.getElementById("settings").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => use(fromAddress(location.hash)));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => article?.draw());
window.matchMedia("(max-width: 640px)").addEventListener("change", () => article?.draw());
use(fromAddress(location.hash));
