// The claims of the source and their verdicts: colour, sign and word.

const VERDICTS = {
  holds: { sign: "\u2713", word: "holds", many: "hold", look: "holds" },
  does_not_hold: { sign: "\u2717", word: "does not hold", many: "do not hold", look: "does-not-hold" },
  undecided: { sign: "?", word: "undecided", many: "undecided", look: "undecided" },
};

const badge = ({ sign, look }, text) => element("span", { class: "verdict " + look }, element("i", {}, sign), " " + text);

const countTexts = (all) => Object.entries(VERDICTS).flatMap(([kind, look]) => {
  const count = all.filter(({ verdict }) => verdict === kind).length;
  return count ? [[look, `${count} ${count > 1 ? look.many : look.word}`]] : [];
});

const coordinateText = (point) => point.map(({ axis, label }) => `${axis} ${label}`).join(", ");

/** The comparisons of a claim, a row each. */
function instanceTable(claim) {
  const axes = [...new Set(claim.instances.flatMap(({ point }) => point.map(({ axis }) => axis)))];
  const head = element("tr", {}, ...axes.map((axis) => element("th", { scope: "col" }, axis)),
    element("th", { scope: "col" }, "verdict"), element("th", { scope: "col" }, "numbers"));
  const rows = claim.instances.map((instance) => element("tr", {},
    ...axes.map((axis) => element("td", {}, element("span", { class: "label" }, instance.point.find((on) => on.axis === axis)?.label ?? ""))),
    element("td", {}, badge(VERDICTS[instance.verdict], VERDICTS[instance.verdict].word)),
    element("td", {}, instance.finding)));
  return element("div", { class: "sideways", tabindex: "0", role: "region", "aria-label": "Instances" },
    element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function claimArticle(claim) {
  const look = VERDICTS[claim.verdict];
  const article = element("article", { class: "claim " + look.look },
    element("p", { class: "says" }, badge(look, look.word), " " + claim.says));
  const finding = claim.instances.length === 1 ? claim.instances[0] : null;
  if (finding) {
    const where = coordinateText(finding.point);
    article.append(element("p", { class: "here" }, element("span", { class: "what" }, "here"), " " + finding.finding + (where ? ` (${where})` : "")));
  }
  if (claim.source_value != null) {
    article.append(element("p", { class: "here" }, element("span", { class: "what" }, "source"), " " + claim.source_value));
  }
  article.append(element("p", { class: "means" }, claim.means));
  if (!finding && claim.instances.length) {
    const counts = countTexts(claim.instances).map(([, text]) => text).join(", ");
    article.append(element("details", {}, element("summary", {}, `${claim.instances.length} comparisons: ${counts}`), instanceTable(claim)));
  }
  return article;
}

function buildClaims() {
  document.getElementById("counts").append(...countTexts(STUDY.claims).flatMap(([look, text]) => [badge(look, text), " "]));
  document.getElementById("verdicts").append(...STUDY.claims.map(claimArticle));
  document.getElementById("claims").hidden = STUDY.claims.length === 0;
}
