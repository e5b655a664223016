// What of a figure is shown under the filter, and how far it reaches.

/**
 * One look for one label in all figures, in the order in which they first appear. Each has a colour of
 * its own as long as there are colours, and then at least among those that it is drawn with.
 */
function labelLooks() {
  const looks = new Map();
  const drawnWith = (label) => STUDY.figures.map(({ groups }) => groups.map((group) => group.label))
    .filter((labels) => labels.includes(label)).flat();
  const free = (taken) => { let look = 0; while (taken.includes(look)) look += 1; return look; };
  for (const label of new Set(STUDY.figures.flatMap(({ groups }) => groups.map((group) => group.label)))) {
    const fresh = free([...looks.values()]);
    looks.set(label, fresh < COLOURS ? fresh : free(drawnWith(label).map((other) => looks.get(other))));
  }
  return looks;
}
let looks = labelLooks();

/** The groups of `figure` as points, and its categories, without those that the filter hides. */
function shownPart(figure) {
  const places = new Map((figure.x.places ?? []).map(({ at, point }) => [at, point]));
  const isShownAt = (x) => isSelected(places.get(x) ?? []);
  const categories = figure.x.categories.map((name, at) => ({ name, at })).filter(({ at }) => isShownAt(at));
  const slots = new Map(categories.map(({ at }, slot) => [at, slot]));
  const across = (x) => figure.x.categories.length ? slots.get(x) : isShownAt(x) ? x : undefined;
  const groups = figure.groups.map((group) => ({
    label: group.label, look: looks.get(group.label), isOn: true,
    points: !isSelected(group.point) ? [] : group.x.flatMap((from, at) => {
      const [x, y] = [across(from), group.y[at]];
      return x == null || y == null ? [] : [{ x, y, interval: group.intervals[at] ?? null }];
    }),
  }));
  const shown = groups.filter(({ points }) => points.length);
  // A stated value is shown with its group; one of no group always.
  const stated = figure.stated.flatMap(({ x: from, y, of }) => {
    const [x, group] = [from == null ? null : across(from), shown.find(({ label }) => label === of) ?? null];
    return from != null && x == null || of != null && !group ? [] : [{ x, y, group }];
  });
  return { categories: categories.map(({ name }) => name), groups: shown, stated };
}

/** The least and the largest of `values`; those that a logarithm does not have are left out. */
function extent(values, isLog) {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    if (value == null || isLog && value <= 0) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least <= most ? [least, most] : isLog ? [1, 10] : [0, 1];
}

/** The range that the study gives for an axis, if the axis can have it. */
const givenRange = ({ range }, isLog) => range && range[0] < range[1] && (!isLog || range[0] > 0) ? range : null;

/** The reach of an axis over `values`, with some room; from zero where `isFromZero` and possible. */
function reach(values, isLog, isFromZero) {
  const [least, most] = extent(values, isLog);
  if (isLog) return least === most ? [least / 2, most * 2] : [least / 1.15, most * 1.15];
  const room = (most - least || Math.abs(most) || 1) * 0.05;
  const isZero = isFromZero && least >= 0;
  return [isZero ? 0 : least - room, most > 0 || !isZero ? most + (isZero ? (most || 1) * 0.06 : room) : 1];
}

/** The tops of stacked points: each group's upon those before it that are on. */
function stacked(groups) {
  const tops = new Map();
  return groups.map((group) => group.points.map((point) => {
    const from = tops.get(point.x) ?? 0;
    if (group.isOn) tops.set(point.x, from + point.y);
    return { ...point, from, to: from + point.y };
  }));
}

/** The whole height of a distribution or of shares that are all; `null` if it is for the values to say. */
function wholeHeight({ kind, y }, values, isLog) {
  if (kind === "cdf" && !isLog) return [0, 1.02];
  if (kind === "ccdf" && isLog) return [extent(values, true)[0] * 0.7, 1.15];
  const most = extent(values, false)[1];
  return kind === "stacked-bars" && y.unit === "share" && most > 0.8 && most < 1.01 ? [0, 1.02] : null;
}

/** How far all that is drawn reaches: x, then y. */
function reaches(figure, { categories, groups, stated }, { isLogX, isLogY }) {
  const points = [...groups.flatMap((group) => group.points), ...stated];
  const ys = figure.kind === "stacked-bars" ? stacked(groups).flat().map(({ to }) => to)
    : points.flatMap(({ y, interval }) => interval ? [y, ...interval] : [y]);
  const y = wholeHeight(figure, ys, isLogY) ?? reach(ys, isLogY, true);
  if (categories.length) return [[-0.5, categories.length - 0.5], y];
  const xs = points.map(({ x }) => x).filter((x) => x != null);
  return [figure.kind === "series" && !isLogX ? extent(xs, false) : reach(xs, isLogX, true), y];
}

/**
 * What is shown of a figure at first: what the study says, or all; of a distribution that goes up to
 * one, all but the slowest thousandth, which would make a line of the rest.
 */
function openingReaches(figure, part, view, all) {
  const beyond = ({ points }) => points.find(({ y }) => y >= 0.999)?.x ?? points.at(-1).x;
  const isCut = figure.kind === "cdf" && !view.isLogX;
  const x = isCut ? [all[0][0], Math.min(all[0][1], Math.max(...part.groups.map(beyond)) * 1.05)] : all[0];
  return [part.categories.length ? all[0] : givenRange(figure.x, view.isLogX) ?? x, givenRange(figure.y, view.isLogY) ?? all[1]];
}
