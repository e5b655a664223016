// Where axes have their marks.

/** 1, 2, 5, 10, 20, … from `min` to `max`, or only the powers of ten. */
function logSplits(min, max, factors) {
  const splits = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power += 1) {
    for (const factor of factors) {
      const split = factor * 10 ** power;
      if (split >= min * 0.999 && split <= max * 1.001) splits.push(split);
    }
  }
  return splits;
}
