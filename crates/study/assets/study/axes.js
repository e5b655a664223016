// The axes of figures: where they have their marks, and what is written there.

const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text) {
  ruler.font = font();
  return ruler.measureText(text).width;
}

/** Marks of a logarithmic axis `length` pixels long: the finest of the usual steps that keeps them `apart`. */
function logMarks([min, max], length, apart) {
  const isClear = (marks) => marks.every((mark, at) => at === 0 || Math.log(mark / marks[at - 1]) / Math.log(max / min) * length >= apart);
  for (const factors of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1]]) {
    const marks = logSplits(min, max, factors);
    if (marks.length >= 2 && isClear(marks)) return marks;
  }
  const decades = logSplits(min, max, [1]);
  if (decades.length >= 2) return decades.filter((mark, at) => at % Math.ceil(decades.length * apart / length) === 0);
  const step = 10 ** Math.floor(Math.log10((max - min) / 2));
  return Array.from({ length: 21 }, (_, at) => (Math.ceil(min / step) + at) * step).filter((mark) => mark <= max);
}

const axisTitle = (axis, unit, isLog) => [axis.label, unit].filter(Boolean).join(", ") + (isLog ? " (log scale)" : "");

/** `text` in lines of at most `width` pixels, broken at spaces. */
function wrapped(text, width) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? lines.at(-1) + " " + word : word;
    if (lines.length && textWidth(longer) <= width) lines[lines.length - 1] = longer; else lines.push(word);
  }
  return lines;
}

/** A long text without its middle: names of categories differ at either end. */
const shortened = (text, most) => text.length > most ? text.slice(0, most - 11).trimEnd() + "\u2026" + text.slice(-10) : text;
const TILT = 38 * Math.PI / 180;

/** The names of categories under their slots: in lines if they fit, tilted if they do not. */
function categoryTexts(u, categories) {
  const slot = u.width * 0.86 / categories.length;
  const lines = categories.map((name) => wrapped(name, slot - 6));
  const isTilted = lines.some((lines) => lines.length > 4 || lines.some((line) => textWidth(line) > slot - 6));
  const texts = isTilted ? categories.map((name) => shortened(name, isNarrow() ? 22 : 34)) : lines.map((lines) => lines.join("\n"));
  return { isTilted, texts, slot };
}

function categoryAxis(figure, categories) {
  const size = (u) => {
    const { isTilted, texts } = categoryTexts(u, categories);
    return isTilted ? 22 + Math.max(...texts.map(textWidth)) * Math.sin(TILT) : 12 + 18 * Math.max(...texts.map((text) => text.split("\n").length));
  };
  return { ...axisLook(), grid: { show: false }, ticks: { show: false }, label: figure.x.label || undefined, labelSize: 22,
    splits: () => categories.map((_, slot) => slot), filter: (u, splits) => splits,
    values: (u) => categoryTexts(u, categories).texts,
    rotate: (u) => categoryTexts(u, categories).isTilted ? TILT * 180 / Math.PI : 0, size, lineGap: 1.25 };
}

/** How far a tilted name reaches to the left beyond what the other axis takes. */
function overhang(u, categories) {
  if (!categories.length) return 0;
  const { isTilted, texts, slot } = categoryTexts(u, categories);
  if (!isTilted) return 0;
  return Math.max(0, ...texts.map((text, at) => (textWidth(text) + 10) * Math.cos(TILT) - 36 - (at + 0.5) * slot));
}

function valueAxis({ axis, isLog, unit, isAcross }) {
  const [size, name] = unit;
  const space = isAcross ? 64 : 36;
  const made = { ...axisLook(), space, values: (u, splits) => markTexts(splits, size, isLog), filter: (u, splits) => splits };
  if (isLog) {
    made.splits = (u, index, min, max) => logMarks([min, max], (isAcross ? u.bbox.width : u.bbox.height) / uPlot.pxRatio, isAcross ? 42 : 17);
  }
  if (isAcross) return { ...made, label: axisTitle(axis, name, isLog), labelSize: 22, size: 30 };
  return { ...made, size: (u, values) => values ? Math.max(...values.map(textWidth), 16) + 14 : 50 };
}

/** The quantiles that the shares of a tail stand for, on its other side. */
function quantileAxis() {
  const decades = (u, index, min, max) => logMarks([min, max], u.bbox.height / uPlot.pxRatio, 17).filter((share) => Math.abs(Math.log10(share) % 1) < 1e-9);
  return { ...axisLook(), side: 1, scale: "y", splits: decades, filter: (u, splits) => splits, grid: { show: false }, ticks: { show: false },
    size: (u, values) => values ? Math.max(...values.map(textWidth), 30) + 14 : 50,
    values: (u, splits) => splits.map((share) => share > 0.5 ? "" : "p" + +((1 - share) * 100).toFixed(8)) };
}
