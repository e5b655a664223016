// Puts the page together: what was run, the filter, and the parts that follow it.

const REPORT = JSON.parse(document.getElementById("data").textContent);
const shownProfiles = new Set(REPORT.runs.keys());
const isShown = (index) => shownProfiles.has(index);
let stalls = [];

function buildHead() {
  const entries = [...REPORT.parameters, { name: "seed", value: String(REPORT.seed) },
    { name: "version", value: "rexmit " + REPORT.version }];
  document.getElementById("parameters").append(...entries.map(({ name, value }) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  document.getElementById("baseline").textContent = REPORT.runs[0]?.profile ?? "";
  document.getElementById("abouts").append(...REPORT.runs.filter((run) => run.about).map((run) =>
    element("div", { "data-profile": run.profile }, element("dt", {}, run.profile), element("dd", {}, run.about))));
}

function buildFilter() {
  const boxes = REPORT.runs.map((run, index) => {
    const box = element("input", { type: "checkbox", checked: "", style: `--own: var(--p${index % COLOURS})` });
    box.addEventListener("change", () => {
      if (box.checked) shownProfiles.add(index); else shownProfiles.delete(index);
      applyFilter();
    });
    return element("label", {}, box, swatch(index), run.profile);
  });
  const form = document.getElementById("filter");
  form.reset();
  form.append(...boxes);
}

function applyFilter() {
  drawTable();
  showCcdfProfiles();
  REPORT.runs.forEach((run, index) => {
    for (const part of document.querySelectorAll("article, #abouts > div")) {
      if (part.dataset.profile === run.profile) part.hidden = !isShown(index);
    }
  });
}

function drawCharts() {
  drawCcdf();
  for (const stall of stalls) {
    stall.destroy?.();
    stall.destroy = stall.draw();
  }
}

buildHead();
buildFilter();
buildCcdfBar();
buildKey();
stalls = REPORT.runs.map(stallArticle);
document.getElementById("stalls").append(...stalls.map((stall) => stall.article));
applyFilter();
drawCharts();
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
window.matchMedia("(max-width: 640px)").addEventListener("change", drawCharts);
let drawnWidth = window.innerWidth;
window.addEventListener("resize", () => {
  // On a phone the height changes with every scroll.
  if (window.innerWidth !== drawnWidth) drawTable();
  drawnWidth = window.innerWidth;
});
