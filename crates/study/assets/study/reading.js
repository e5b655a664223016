// What lies under the cursor: the value of each group there.

/** The last of `points`, which ascend in x, for which `isBefore` holds; its index. */
function lastWhere(points, isBefore) {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(points[middle])) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/** The share of a distribution, or the value of a series, at `x`; as the steps are drawn. */
function stepAt(kind, points, x) {
  if (kind === "ccdf") return points[lastWhere(points, (point) => point.x < x) + 1]?.y ?? null;
  const at = lastWhere(points, (point) => point.x <= x);
  return at < 0 ? kind === "cdf" ? 0 : null : points[at].y;
}

function nearestMark(u, groups) {
  let [best, least] = [null, 28];
  groups.forEach(({ points, isOn }, group) => {
    if (!isOn) return;
    for (const point of points) {
      const distance = Math.hypot(u.valToPos(point.x, "x") - u.cursor.left, u.valToPos(point.y, "y") - u.cursor.top);
      if (distance < least) [best, least] = [{ group, point }, distance];
    }
  });
  return best;
}

function nearestX(groups, x, u) {
  const all = groups.filter(({ isOn }) => isOn).flatMap(({ points }) => points.map((point) => point.x));
  const distance = (value) => Math.abs(u.valToPos(value, "x") - u.valToPos(x, "x"));
  return all.reduce((best, value) => best == null || distance(value) < distance(best) ? value : best, null);
}

/** Where the cursor is, in words, and what each group has there; `null` if it is elsewhere. */
function readingAt(u, figure, { categories, groups }) {
  const { left } = u.cursor;
  if (left == null || left < 0 || !groups.length) return null;
  const across = (x) => numberText(x, figure.x.unit);
  const value = (point) => point ? meanText(point.y, point.interval, figure.y.unit) : "\u2013";
  const x = u.posToVal(left, "x");
  if (figure.kind === "scatter") {
    const mark = nearestMark(u, groups);
    return mark && { at: across(mark.point.x), values: groups.map((group, at) => at === mark.group ? value(mark.point) : "") };
  }
  if (STEPS[figure.kind]) {
    const text = (y) => y == null ? "none" : numberText(y, figure.y.unit);
    return { at: (figure.kind === "cdf" ? "\u2264 " : figure.kind === "ccdf" ? "\u2265 " : "") + across(x),
      values: groups.map(({ points }) => text(stepAt(figure.kind, points, x))) };
  }
  const at = categories.length ? within(Math.round(x), 0, categories.length - 1) : nearestX(groups, x, u);
  if (at == null) return null;
  return { at: categories.length ? categories[at] : across(at), values: groups.map(({ points }) => value(points.find((point) => point.x === at))) };
}
