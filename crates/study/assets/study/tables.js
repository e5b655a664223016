// Tables of what was measured: the gains beside their costs, and everything.

const quantityAt = new Map(STUDY.quantities.map(({ name }, at) => [name, at]));
const cellAxes = STUDY.axes.filter(({ labels }) => labels.length > 1).map(({ name }) => name);
const labelOf = (cell, axis) => cell.point.find((on) => on.axis === axis)?.label ?? "";
const cellName = (cell) => cellAxes.map((axis) => labelOf(cell, axis)).join(", ") || "all";
const shownCells = () => STUDY.cells.filter(({ point }) => isSelected(point));
const known = (names) => names.filter((name) => quantityAt.has(name));

/** A name that may break after its dots and underscores. */
const breakable = (name) => name.split(/(?<=[._])/).flatMap((part) => [part, element("wbr")]);
const rowLabel = (...parts) => element("span", { class: "label" }, ...parts);

const order = { column: null, isDown: false };

function valueText(cell, name) {
  const at = quantityAt.get(name);
  const value = cell.values[at];
  return value ? meanText(value[0], value[1], STUDY.quantities[at].unit) : "\u2013";
}

/** The cells in the order that the reader chose: by an axis as its labels come, by a quantity as it grows. */
function sortedCells() {
  const cells = shownCells();
  if (order.column == null) return cells;
  const axis = STUDY.axes.find(({ name }) => "axis " + name === order.column);
  const key = axis ? (cell) => axis.labels.indexOf(labelOf(cell, axis.name))
    : (cell) => cell.values[quantityAt.get(order.column)]?.[0] ?? Infinity;
  const way = order.isDown ? -1 : 1;
  return cells.sort((a, b) => key(a) === key(b) ? 0 : key(a) < key(b) ? -way : way);
}

function sortHeading(column, text) {
  const isBy = order.column === column;
  const look = column.startsWith("axis ") ? "axis" : "";
  const made = button("", "sort by " + text, () => {
    order.isDown = isBy && !order.isDown;
    order.column = column;
    drawCosts();
  });
  made.append(...breakable(text), isBy ? order.isDown ? " \u2193" : " \u2191" : "");
  return element("th", { scope: "col", class: look, "aria-sort": !isBy ? "none" : order.isDown ? "descending" : "ascending" }, made);
}

function drawCosts() {
  const costs = known(STUDY.costs);
  const gains = known(STUDY.gains).filter((name) => !costs.includes(name));
  const parts = [["gains", gains], ["costs", costs]].filter(([, names]) => names.length);
  const first = (at) => at === 0 ? { class: "first" } : {};
  const top = element("tr", {}, ...cellAxes.length ? [element("td", { colspan: cellAxes.length })] : [],
    ...parts.map(([text, names]) => element("th", { colspan: names.length, class: "group first", scope: "colgroup" }, text)));
  const heads = element("tr", {}, ...cellAxes.map((axis) => sortHeading("axis " + axis, axis)),
    ...parts.flatMap(([, names]) => names.map((name, at) => { const made = sortHeading(name, name); if (at === 0) made.className = "first"; return made; })));
  const rows = sortedCells().map((cell) => element("tr", {}, ...cellAxes.map((axis) => element("th", { scope: "row" }, rowLabel(labelOf(cell, axis)))),
    ...parts.flatMap(([, names]) => names.map((name, at) => element("td", first(at), valueText(cell, name))))));
  document.getElementById("cost-table").replaceChildren(
    element("table", { class: "plain numbers" }, element("thead", {}, top, heads), element("tbody", {}, ...rows)));
}

/** Everything, a row per quantity and a column per cell; made when it is first opened. */
function drawAll() {
  const details = document.getElementById("all");
  if (!details.open) return;
  const search = details.querySelector("input").value.trim().toLowerCase();
  const cells = shownCells();
  const described = STUDY.quantities.filter(({ name }) => name.toLowerCase().includes(search));
  const head = element("tr", {}, element("th", { scope: "col" }, "quantity"), ...cells.map((cell) => element("th", { scope: "col" }, cellName(cell))));
  const rows = described.map(({ name, about }) => element("tr", {}, element("th", { scope: "row", title: about }, rowLabel(...breakable(name))),
    ...cells.map((cell) => element("td", {}, valueText(cell, name)))));
  details.querySelector(".sideways").replaceChildren(
    element("table", { class: "plain numbers" }, element("thead", {}, head), element("tbody", {}, ...rows)));
}

const csvField = (value) => { const text = String(value ?? ""); return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };

/** Every value of the cells that are shown, a line each. */
function csv() {
  const axes = STUDY.axes.map(({ name }) => name);
  const lines = shownCells().flatMap((cell) => cell.values.flatMap((value, at) => {
    const { name, unit } = STUDY.quantities[at];
    return value ? [[...axes.map((axis) => labelOf(cell, axis)), name, unit, value[2], value[0], value[1]?.[0], value[1]?.[1]]] : [];
  }));
  return [[...axes, "quantity", "unit", "seeds", "mean", "low", "high"], ...lines].map((line) => line.map(csvField).join(",") + "\r\n").join("");
}

function saveCsv() {
  const address = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  element("a", { href: address, download: STUDY.study.name + ".csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function buildTables() {
  const hasChosen = known([...STUDY.gains, ...STUDY.costs]).length > 0;
  document.getElementById("cost-table").hidden = document.getElementById("cost-words").hidden = !hasChosen;
  document.querySelector("#cost-words dl").append(...known([...new Set([...STUDY.gains, ...STUDY.costs])]).map((name) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, STUDY.quantities[quantityAt.get(name)].about))));
  const details = document.getElementById("all");
  const search = element("input", { type: "search", placeholder: "part of a name", "aria-label": "quantities whose name contains" });
  search.addEventListener("input", drawAll);
  details.addEventListener("toggle", drawAll);
  details.append(element("div", { class: "bar" }, search, element("span", { class: "space" }), button("CSV", "save what is shown as CSV", saveCsv)),
    element("div", { class: "sideways tall", tabindex: "0", role: "region", "aria-label": "Everything that was measured" }));
}
