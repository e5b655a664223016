// A figure on the page: title, switches, chart, and a legend that reads values and toggles groups.

/** Text of a study file in paragraphs: an empty line parts them. */
function paragraphs(text) {
  return text.split(/\n\s*\n/).filter((part) => part.trim()).map((part) => element("p", { class: "note" }, part.trim()));
}

const hints = { scatter: "Point at a mark to read it." };

/** The legend: a button per group that toggles it and shows its value under the cursor. */
function legendOf(figure, part, onToggle) {
  const hint = hints[figure.kind] ?? "Point at the chart to read its values.";
  const where = element("p", { class: "reading", "aria-live": "off" }, hint);
  const entries = part.groups.map((group) => {
    const value = element("span", { class: "value" });
    const entry = element("button", { type: "button", class: "entry", "aria-pressed": "true", title: `show or hide ${group.label}`, "data-label": group.label },
      sign(figure.kind, group.look), element("span", { class: "label" }, group.label), value);
    entry.addEventListener("click", () => {
      group.isOn = !group.isOn;
      entry.setAttribute("aria-pressed", String(group.isOn));
      onToggle();
    });
    return { entry, value };
  });
  const show = (reading) => {
    where.textContent = reading ? reading.at : hint;
    entries.forEach(({ value }, at) => { value.textContent = reading ? reading.values[at] : ""; });
  };
  const source = part.stated.length ? [element("span", { class: "stated" }, statedSign(), element("span", { class: "label" }, "stated by the source"))] : [];
  const list = element("div", { class: "legend", role: "group", "aria-label": "Groups" }, ...entries.map(({ entry }) => entry), ...source);
  return { node: element("div", {}, where, list), show };
}

/** Moves and widens the part of x that is shown, on the scale as it is drawn. */
function moveAcross({ chart, whole, all }, isLog, factor, shift) {
  const [to, from] = isLog ? [Math.log, Math.exp] : [(value) => value, (value) => value];
  const [first, last] = [Math.min(whole[0][0], all[0][0]), Math.max(whole[0][1], all[0][1])].map(to);
  const [min, max] = [chart.scales.x.min, chart.scales.x.max].map(to);
  const span = Math.min((max - min) * factor, last - first);
  const start = within((min + max) / 2 + shift * (max - min) - span / 2, first, last - span);
  chart.setScale("x", { min: from(start), max: from(start + span) });
}

function figureArticle(figure) {
  const view = { isLogX: figure.x.log && !figure.x.categories.length, isLogY: figure.y.log || figure.kind === "ccdf" };
  const nodes = { unreached: element("p", { class: "note" }), tools: element("div", { class: "bar" }), title: element("p", { class: "axis-title" }),
    chart: element("div", { class: "chart" }), legend: element("div", {}) };
  const article = element("article", { class: "figure" }, element("h2", {}, figure.title),
    ...paragraphs(figure.about), nodes.unreached, nodes.tools, nodes.title, nodes.chart, nodes.legend);
  let drawn = null;
  const forget = () => { drawn?.observer.disconnect(); drawn?.chart.destroy(); drawn = null; };
  const draw = () => {
    forget();
    const part = shownPart(figure);
    const left = unreached(figure);
    nodes.unreached.hidden = left.length === 0;
    nodes.unreached.textContent = `Not divided by ${left.join(", ")}: the filter leaves this figure as it is.`;
    const isEmpty = part.groups.length === 0;
    nodes.tools.hidden = nodes.title.hidden = isEmpty;
    nodes.chart.replaceChildren(...isEmpty ? [element("p", { class: "note" }, "There is nothing of this figure in what is shown.")] : []);
    nodes.legend.replaceChildren();
    if (isEmpty) return;
    const legend = legendOf(figure, part, () => toggle(part));
    nodes.legend.append(legend.node);
    drawn = drawChart(figure, part, view, nodes.chart, (u) => legend.show(readingAt(u, figure, part)));
    drawn.observer = followWidth(nodes.chart, drawn.chart, () => chartHeight(part));
    const isPart = drawn.whole.some((range, at) => range[0] > drawn.all[at][0] || range[1] < drawn.all[at][1]);
    for (const made of nodes.tools.querySelectorAll(".rest")) made.hidden = !isPart;
    nodes.title.textContent = axisTitle(figure.y, drawn.units[1][1], view.isLogY);
  };
  const toggle = (part) => {
    if (!isPainted(figure)) part.groups.forEach(({ isOn }, at) => drawn.chart.setSeries(at + 1, { show: isOn }));
    drawn.chart.redraw(false);
  };
  nodes.tools.append(...figureTools(figure, view, draw, () => drawn));
  return { article, draw };
}

/** Switches of the scales, and zoom for those who cannot drag: on a phone, by keyboard. */
function figureTools(figure, view, draw, drawn) {
  const scale = (name, key, axis) => {
    const made = button(name, `logarithmic scale ${axis}`, () => {
      view[key] = !view[key];
      made.setAttribute("aria-pressed", String(view[key]));
      draw();
    });
    made.setAttribute("aria-pressed", String(view[key]));
    return made;
  };
  const move = (factor, shift) => () => moveAcross(drawn(), view.isLogX, factor, shift);
  const whole = button("reset", "show the figure as at first", () => drawn().showWhole());
  const all = button("all", "show all values, also those beyond the axes of the figure", () => drawn().showAll());
  all.className = "rest";
  if (figure.kind === "stacked-bars") return [element("span", { class: "space" }), all, whole];
  if (figure.x.categories.length) return [scale("log y", "isLogY", "upwards"), element("span", { class: "space" }), all, whole];
  return [scale("log x", "isLogX", "across"), scale("log y", "isLogY", "upwards"), element("span", { class: "space" }),
    button("+", "zoom in", move(0.5, 0)), button("\u2212", "zoom out", move(2, 0)),
    button("\u2190", "move left", move(1, -0.4)), button("\u2192", "move right", move(1, 0.4)), all, whole];
}
