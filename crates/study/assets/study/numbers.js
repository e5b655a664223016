// Numbers with their units, and with the digits that their intervals allow.

const UNITS = {
  milliseconds: [[1, "ms"]],
  seconds: [[1, "s"]],
  bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  bits_per_second: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
  count: [[1, ""]],
  share: [[0.01, "%"]],
  ratio: [[1, ""]],
};
const MINUS = "\u2212";

/** The multiple of `unit` that suits values up to `largest`: how much one of it is, and its name. */
function multiple(unit, largest) {
  const all = UNITS[unit] ?? [[1, ""]];
  return all.find(([size]) => Math.abs(largest) >= size) ?? all.at(-1);
}

const digitsBefore = (value) => value === 0 ? 1 : Math.floor(Math.log10(Math.abs(value))) + 1;
const within = (value, least, most) => Math.min(Math.max(value, least), most);

/** A number with `digits` decimals, a proper minus and its thousands apart. */
function plain(value, digits) {
  // What rounds to nothing has no sign.
  const isNegative = value < 0 && Number(value.toFixed(digits)) !== 0;
  const [whole, part] = Math.abs(value).toFixed(digits).split(".");
  return (isNegative ? MINUS : "") + figure(Number(whole)) + (part ? "." + part : "");
}

/** A number alone, with four digits, or all of a whole one. */
function numberText(value, unit) {
  const [size, name] = multiple(unit, value);
  const shown = value / size;
  const digits = Number.isInteger(shown) ? 0 : within(4 - digitsBefore(shown), 0, 8);
  return withUnit(plain(shown, digits), name);
}

const withUnit = (text, name) => name ? text + THIN_SPACE + name : text;

/** A mean and, if known, the half-width of its interval, to two digits of the latter. */
function meanText(mean, interval, unit) {
  if (mean == null) return "\u2013";
  const half = interval ? (interval[1] - interval[0]) / 2 : 0;
  if (!(half > 0)) return numberText(mean, unit);
  const [size, name] = multiple(unit, Math.max(Math.abs(mean), half));
  const digits = within(2 - digitsBefore(half / size), 0, within(6 - digitsBefore(mean / size), 0, 8));
  return withUnit(`${plain(mean / size, digits)} \u00b1 ${plain(half / size, digits)}`, name);
}

/** The marks of an axis as texts without unit, all with the decimals that tell them apart. */
function markTexts(marks, size, isLog) {
  // A hundredth is not exact: 0.07 of them are not quite 7.
  const shown = marks.map((mark) => Number((mark / size).toPrecision(10)));
  if (isLog) return shown.map((value) => {
    const digits = within(1 - digitsBefore(value), 0, 10);
    return plain(value, Number(value.toFixed(digits)) === value ? digits : digits + 1);
  });
  const step = Math.abs(shown[1] - shown[0]) || 1;
  let digits = within(-Math.floor(Math.log10(step) + 1e-9), 0, 10);
  if (Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return shown.map((value) => plain(value, digits));
}

/** `1 … 10`, or the numbers themselves. */
function numbersText(numbers) {
  const isRun = numbers.length > 3 && numbers.every((number, at) => number === numbers[0] + at);
  return isRun ? `${numbers[0]} \u2026 ${numbers.at(-1)}` : numbers.join(", ");
}

/** Simulated time in the largest unit that it fills. */
function durationText(seconds) {
  const [size, name] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([size]) => seconds >= 2 * size) ?? [1, "s"];
  return plain(seconds / size, Number.isInteger(seconds / size) ? 0 : 1) + THIN_SPACE + name;
}
