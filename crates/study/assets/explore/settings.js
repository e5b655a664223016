// The settings as a form, in the address, and as the server takes them.

const TRACE = "trace ";
const sections = { interval_ms: "messages", size: "messages", duration_s: "runs" };

/** The values of a slider: 0 if allowed, the ends, and ten values in each decade between. */
function sliderValues({ least, most, log_from, step }) {
  const values = [];
  for (let power = Math.floor(Math.log10(log_from)); power <= Math.log10(most); power += 1) {
    for (const digits of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
      const value = Number((digits * 10 ** power).toPrecision(3));
      if (value >= log_from && value <= most && Number.isInteger(Number((value / step).toPrecision(9)))) values.push(value);
    }
  }
  return [...new Set([least, ...values, most])];
}

const closest = (values, wanted) => values.reduce((best, value, at) => Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? at : best, 0);

/** A number with its slider: the number is exact, the slider has round values. */
function numberControl(control, onChange) {
  const values = sliderValues(control);
  const id = "setting-" + control.name;
  const number = element("input", { type: "number", id, min: control.least, max: control.most, step: control.step, required: "", inputmode: "decimal", title: control.about });
  const slider = element("input", { type: "range", min: 0, max: values.length - 1, step: 1, "aria-label": `${control.label}, slider`, title: control.about, "data-name": control.name });
  const unit = element("span", { class: "unit" });
  const tell = () => {
    const isZero = control.zero && Number(number.value) === 0;
    unit.textContent = isZero ? control.zero : control.unit;
    slider.setAttribute("aria-valuetext", isZero ? control.zero : `${number.value} ${control.unit}`);
  };
  const follow = () => {
    slider.value = closest(values, Number(number.value));
    tell();
  };
  slider.addEventListener("input", () => {
    number.value = values[slider.value];
    tell();
    onChange();
  });
  number.addEventListener("input", () => { follow(); onChange(); });
  const row = element("div", { class: "control" }, element("label", { for: id }, control.label), number, unit, slider);
  document.getElementById(sections[control.name] ?? "link").append(row);
  return {
    read: () => number.value === "" ? NaN : Number(number.value), row,
    write: (value) => { number.value = value; follow(); },
    disable: (is) => { number.disabled = slider.disabled = is; },
  };
}

function rhythmControl(onChange) {
  const option = (value, text) => element("option", { value }, text);
  const select = element("select", { id: "rhythm" }, option("every", "at constant intervals"), option("poisson", "at random intervals (Poisson)"),
    ...OFFER.traces.map(({ name, about }) => option(TRACE + name, `trace: ${about}`)));
  select.addEventListener("change", onChange);
  document.getElementById("messages").append(element("label", { class: "check", for: "rhythm" }, "Sent"), select);
  return select;
}

function checkbox(name, parent, onChange) {
  const box = element("input", { type: "checkbox", "data-name": name });
  box.addEventListener("change", onChange);
  const label = element("label", { class: "check" }, box, name);
  parent.append(label);
  return box;
}

/** The form: `read` and `write` its settings. */
function buildForm(onChange) {
  const changed = () => { enable(); onChange(); };
  const rhythm = rhythmControl(changed);
  const numbers = new Map(OFFER.controls.map((control) => [control.name, numberControl(control, changed)]));
  const ordered = checkbox("delivered in order", document.getElementById("messages"), changed);
  const choices = element("div", { class: "choices" });
  document.getElementById("systems").append(choices);
  const systems = OFFER.systems.map((system) => ({ ...system, box: checkbox(system.name, choices, changed) }));
  const known = OFFER.systems.filter(({ about }) => about);
  document.getElementById("systems").append(element("details", { class: "note" }, element("summary", {}, "What they are"),
    element("dl", {}, ...known.flatMap(({ name, about }) => [element("dt", {}, name), element("dd", {}, about)]))));
  if (OFFER.how_to_build) document.getElementById("systems").append(element("p", { class: "note" }, `Other implementations: ${OFFER.how_to_build}.`));
  const seeds = numberControl({ name: "seeds", label: "Runs of each", unit: "", about: "each has its own losses", least: 1, most: OFFER.seeds, step: 1, log_from: 1 }, changed);
  document.getElementById("runs").append(seeds.row);
  // Settings without effect are disabled, and systems that do not fit are left out.
  const enable = () => {
    const isTrace = rhythm.value.startsWith(TRACE);
    for (const name of ["interval_ms", "size"]) numbers.get(name).disable(isTrace);
    numbers.get("burst_ms").disable(!(numbers.get("loss_percent").read() > 0));
    numbers.get("queue").disable(!(numbers.get("rate_kbit").read() > 0));
    for (const { box, is_ordered_only, about } of systems) {
      box.disabled = is_ordered_only && !ordered.checked;
      box.parentElement.title = box.disabled ? "delivers in order only" : about ?? "";
    }
  };
  const read = () => ({
    rhythm: rhythm.value.startsWith(TRACE) ? { trace: rhythm.value.slice(TRACE.length) } : rhythm.value,
    ordered: ordered.checked, seeds: seeds.read(),
    ...Object.fromEntries([...numbers].map(([name, control]) => [name, control.read()])),
    systems: systems.filter(({ box }) => box.checked && !box.disabled).map(({ name }) => name),
  });
  const write = (settings) => {
    rhythm.value = settings.rhythm.trace ? TRACE + settings.rhythm.trace : settings.rhythm;
    ordered.checked = settings.ordered;
    seeds.write(settings.seeds);
    numbers.forEach((control, name) => control.write(settings[name]));
    systems.forEach(({ box, name }) => { box.checked = settings.systems.includes(name); });
    enable();
  };
  return { read, write };
}

/** The settings as the part of the address after the `#`. */
function toAddress(settings) {
  const words = { ...settings, rhythm: settings.rhythm.trace ? TRACE + settings.rhythm.trace : settings.rhythm, systems: settings.systems.join(",") };
  return "#" + new URLSearchParams(words);
}

/** The settings of an address; what it lacks, or has in another form, is that of the page. */
function fromAddress(address) {
  const settings = { ...OFFER.settings };
  const words = new URLSearchParams(address.replace(/^#/, ""));
  for (const name of [...OFFER.controls.map((control) => control.name), "seeds"]) {
    const text = words.get(name);
    if (text && Number.isFinite(Number(text))) settings[name] = Number(text);
  }
  const rhythm = words.get("rhythm");
  if (["every", "poisson"].includes(rhythm)) settings.rhythm = rhythm;
  const trace = OFFER.traces.find(({ name }) => TRACE + name === rhythm);
  if (trace) settings.rhythm = { trace: trace.name };
  if (words.has("ordered")) settings.ordered = words.get("ordered") === "true";
  if (words.has("systems")) settings.systems = words.get("systems").split(",");
  return settings;
}
