// The selection: for each axis of the study the selected labels. Anything that names a label
// that is not is hidden, in every figure and table; what is pooled over an axis does not name it.

const hiddenLabels = new Map(STUDY.axes.map(({ name }) => [name, new Set()]));

const isSelected = (point) => point.every(({ axis, label }) => !hiddenLabels.get(axis)?.has(label));

/** The axes that are narrowed and that nothing of `figure` names: what the filter does not reach. */
function unreached({ groups, x }) {
  const named = new Set([...groups, ...x.places ?? []].flatMap(({ point }) => point.map(({ axis }) => axis)));
  return STUDY.axes.map(({ name }) => name).filter((name) => hiddenLabels.get(name).size && !named.has(name));
}

const summaryText = ({ name, labels }) => {
  const shown = labels.filter((label) => !hiddenLabels.get(name).has(label));
  const text = shown.length === labels.length ? "all" : shown.length === 0 ? "none"
    : shown.length === 1 ? shown[0] : `${shown.length} of ${labels.length}`;
  return element("b", {}, text);
};

/** The labels of an axis to choose from, folded under what is chosen. */
function axisChoice(axis, onChange) {
  const hidden = hiddenLabels.get(axis.name);
  const chosen = element("span", {});
  const boxes = axis.labels.map((label) => element("input", { type: "checkbox", checked: "", "data-axis": axis.name, "data-label": label }));
  const apply = () => {
    hidden.clear();
    axis.labels.forEach((label, at) => { if (!boxes[at].checked) hidden.add(label); });
    chosen.replaceChildren(summaryText(axis));
    details.classList.toggle("narrowed", hidden.size > 0);
    onChange();
  };
  const select = (isWanted) => { boxes.forEach((box, at) => { box.checked = isWanted(at); }); apply(); };
  boxes.forEach((box) => box.addEventListener("change", apply));
  const rows = axis.labels.map((label, at) => element("li", {}, element("label", {}, boxes[at], label),
    button("only", `only ${axis.name} = ${label}`, () => select((other) => other === at))));
  chosen.append(summaryText(axis));
  const details = element("details", { class: "choice", name: "choice" }, element("summary", {}, axis.name + ": ", chosen),
    element("div", { class: "menu" }, button("all", `all of ${axis.name}`, () => select(() => true)), element("ul", {}, ...rows)));
  return details;
}

function buildFilter(onChange) {
  const form = document.getElementById("filter");
  const axes = STUDY.axes.filter(({ labels }) => labels.length > 1);
  form.hidden = axes.length === 0;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(element("span", { class: "what" }, "show"), ...axes.map((axis) => axisChoice(axis, onChange)));
  document.addEventListener("click", (event) => {
    for (const open of form.querySelectorAll("details[open]")) if (!open.contains(event.target)) open.open = false;
  });
}
