// Puts the page together.

function buildSetting() {
  const { study } = STUDY;
  const simulated = study.runs > 0 ? [["simulated time", durationText(study.simulated_s)]] : [];
  const entries = [...study.setting.map(({ axis, label }) => [axis, label]),
    ...STUDY.axes.map(({ name, labels }) => [name, labels.join(" \u00b7 ")]),
    ...study.seeds.length ? [["seeds", numbersText(study.seeds)]] : [], ["runs", figure(study.runs)], ...simulated,
    ["version", "rexmit " + study.version]];
  document.getElementById("parameters").append(...entries.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  document.querySelector("#file pre").textContent = study.file;
  document.getElementById("file").hidden = !study.file;
}

const figures = STUDY.figures.map(figureArticle);
const drawFigures = () => figures.forEach(({ draw }) => draw());

document.getElementById("about").append(...paragraphs(STUDY.study.about));
document.getElementById("notes").append(...STUDY.notes.map((note) => element("p", { class: "note" }, note)));
buildClaims();
buildFilter(() => { drawFigures(); drawCosts(); drawAll(); });
document.getElementById("figures").append(...figures.map(({ article }) => article));
buildTables();
buildSetting();
drawCosts();
drawFigures();
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawFigures);
window.matchMedia("(max-width: 640px)").addEventListener("change", drawFigures);
