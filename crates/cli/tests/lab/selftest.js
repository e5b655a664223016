// Runs in the page of `rexmit lab serve` after its own scripts, and posts what it found.
"use strict";
(async () => {
  const found = { errors: window.selftestErrors };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const busy = () => one("#answer").getAttribute("aria-busy");
  const until = async (is) => { while (!is()) await new Promise((done) => setTimeout(done, 20)); };
  // Questions that have ended, and what the page showed when the latest one began.
  let ended = 0;
  let atBegin = null;
  new MutationObserver(() => {
    if (busy() === "false") ended += 1; else atBegin = { busy: busy(), table: one("#table").textContent };
  }).observe(one("#answer"), { attributeFilter: ["aria-busy"] });
  // Does something that asks, and waits for the answer: the page asks after a pause.
  const asking = async (act) => {
    const before = ended;
    act();
    await until(() => ended > before);
  };
  const loss = one("#setting-loss_percent");
  const slider = one("[data-name=loss_percent]");
  const ink = () => {
    const canvas = one("#figures canvas");
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = colour("p0");
    probe.fillRect(0, 0, 1, 1);
    const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      count += data[at + 3] > 130 && Math.abs(data[at] - red) < 24 && Math.abs(data[at + 1] - green) < 24 && Math.abs(data[at + 2] - blue) < 24;
    }
    return count;
  };
  const state = () => ({
    loss: loss.value, spoken: slider.getAttribute("aria-valuetext"), address: location.hash, table: one("#table").textContent,
    problem: one("#problem").hidden ? "" : one("#problem").textContent,
  });
  const set = (input, value, type = "input") => {
    input.value = value;
    input.dispatchEvent(new Event(type, { bubbles: true }));
  };
  const load = (text) => {
    const files = new DataTransfer();
    files.items.add(new File([text], "mine.toml"));
    one("#load").files = files.files;
    one("#load").dispatchEvent(new Event("change", { bubbles: true }));
  };
  try {
    await until(() => busy() === "false" && one("#table tbody tr"));
    found.first = { ...state(), rows: all("#table tbody tr").map((row) => row.dataset.system), ink: ink(), curves: all("#figures .entry").length };

    slider.stepUp();
    await asking(() => slider.dispatchEvent(new Event("input", { bubbles: true })));
    found.stayed = atBegin;
    found.moved = state();

    await asking(() => set(loss, "5"));
    found.back = state();

    let saved = null;
    const original = URL.createObjectURL;
    URL.createObjectURL = (blob) => { saved = blob; return original(blob); };
    const click = HTMLAnchorElement.prototype.click;
    HTMLAnchorElement.prototype.click = function () { found.saved = { name: this.download }; };
    one("#save").click();
    await until(() => found.saved);
    found.saved.text = await saved.text();
    [URL.createObjectURL, HTMLAnchorElement.prototype.click] = [original, click];

    await asking(() => set(one("#rhythm"), "trace ssh", "change"));
    found.other = state();

    await asking(() => load(found.saved.text));
    found.loaded = state();

    load("seeds = [");
    await until(() => !one("#problem").hidden);
    found.refused = state();

    await asking(() => set(loss, "99"));
    found.beyond = state();
    await asking(() => set(loss, "5"));
    found.recovered = state();

    const unitOf = (name) => one(`#setting-${name}`).nextElementSibling.textContent;
    const units = [unitOf("rate_kbit")];
    await asking(() => set(one("#setting-rate_kbit"), "1000"));
    units.push(unitOf("rate_kbit"));
    await asking(() => set(one("#setting-rate_kbit"), "0"));
    found.units = [...units, unitOf("rate_kbit")];
    found.explained = all("#systems dt").map((term) => term.textContent);

    const box = all("#systems input").find(({ dataset }) => dataset.name === "tcp-cubic");
    const ordered = all("#messages input").find(({ dataset }) => dataset.name === "delivered in order");
    const before = !box.disabled;
    await asking(() => ordered.click());
    found.ordered = { offered: [before, !box.disabled] };
    found.unlabelled = all("input, select, button").filter((it) => !it.labels?.length && !it.getAttribute("aria-label") && !it.textContent).map((it) => it.outerHTML);
    found.overflow = document.documentElement.scrollWidth - window.innerWidth;
  } catch (error) {
    found.errors.push(String(error.stack));
  }
  await fetch("/found", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(found) });
})();
