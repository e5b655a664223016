"use strict";
// Colours, figures and small elements. Colours live in report.css; a canvas has to ask for them.

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 4], [12, 3]];
const COLOURS = 7;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const profileColour = (index) => colour("p" + (index % COLOURS));
const profileDash = (index) => DASHES[index % DASHES.length];
const font = (size = 12) => `${size}px ${getComputedStyle(document.body).fontFamily}`;
const isNarrow = () => window.matchMedia("(max-width: 640px)").matches;

const THIN_SPACE = "\u202f";

/** A figure with `digits` decimals and its thousands apart. */
const figure = (value, digits = 0) =>
  value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, THIN_SPACE);

/** Milliseconds with the decimals they deserve. */
const millis = (ms) => figure(ms, ms < 10 ? 2 : ms < 1000 ? 1 : 0);

/** A share as percentage with at most two significant digits below ten. */
const percent = (share) => {
  const value = share * 100;
  const digits = value >= 10 ? 0 : Math.min(8, 1 - Math.floor(Math.log10(value)));
  const text = value.toFixed(digits);
  return (digits ? text.replace(/\.?0+$/, "") : text) + THIN_SPACE + "%";
};

/** An element with attributes and children; a string becomes text, never markup. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http" + "://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The line of a profile as it looks in the chart. */
function swatch(index) {
  const line = svg("line", {
    x1: 0, y1: 5, x2: 26, y2: 5, "stroke-width": 2.5, "stroke-dasharray": profileDash(index).join(" "),
    style: `stroke: var(--p${index % COLOURS})`,
  });
  return svg("svg", { class: "swatch", width: 26, height: 10, "aria-hidden": "true" }, line);
}

const button = (text, label, onClick) => {
  const made = element("button", { type: "button", "aria-label": label, title: label }, text);
  made.addEventListener("click", onClick);
  return made;
};

/** The look that all axes share. */
const axisLook = () => ({
  stroke: colour("soft"), font: font(), labelFont: font(),
  grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1, size: 4 },
});

/** Keeps `chart` as wide as its container; a hidden container has no width and is left alone. */
function followWidth(container, chart, height) {
  const observer = new ResizeObserver(() => {
    const width = container.clientWidth;
    if (width > 0 && width !== chart.width) chart.setSize({ width, height: height() });
  });
  observer.observe(container);
  return observer;
}
