// Counts of ranges and their standard errors: what Python wrote is looked up and summed, nothing is inferred.

const KINDS = { f8: Float64Array, u8: BigUint64Array, i4: Int32Array };

/** A record with its arrays, which are written as bytes. */
export function unpacked(written) {
  if (Array.isArray(written)) return written.map(unpacked);
  if (written === null || typeof written !== "object") return written;
  const [[code, text] = [], more] = Object.entries(written);
  if (!more && code in KINDS) return new KINDS[code](Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer);
  return Object.fromEntries(Object.entries(written).map(([key, value]) => [key, unpacked(value)]));
}

/** The first place whose end is not below a cell. */
export function find(ends, cell) {
  let [low, high] = [0, ends.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] < cell) low = middle + 1; else high = middle;
  }
  return low;
}

const running = (numbers) => numbers.reduce((sums, each) => { sums.push(sums.at(-1) + each); return sums; }, [0]);

/** Counts of pieces, spread evenly inside of them. */
class Curve {
  constructor(ends, counts) { Object.assign(this, { ends, counts, before: running(counts) }); }

  start(piece) { return piece ? this.ends[piece - 1] + 1n : 0n; }

  upto(cell) {
    const piece = find(this.ends, cell), start = this.start(piece), width = Number(this.ends[piece] - start) + 1;
    return this.before[piece] + ((Number(cell - start) + 1) / width) * this.counts[piece];
  }
}

/** The variances of sums of the leaves of a tree: both sides of a range climb to the children of one node. */
class Tree {
  constructor({ variance: spread, ...tables }) { Object.assign(this, tables, { spread }); }

  variance(first, last) {
    const { leaves, parents, levels } = this;
    if (first.piece === last.piece) return (last.share - first.share) ** 2 * this.spread[leaves[last.piece]];
    let low = { node: leaves[first.piece], weight: 1 - first.share, variance: 0 }, high = { node: leaves[last.piece], weight: last.share, variance: 0 };
    for (let level = levels.length - 1; level >= 0; level -= 1) {
      const start = levels[level];
      if (parents[low.node] === parents[high.node] && Math.min(low.node, high.node) >= start) return this.joined(low, high);
      if (low.node >= start) low = this.lifted(low, this.younger, this.elder);
      if (high.node >= start) high = this.lifted(high, this.elder, this.younger);
    }
    return NaN;
  }

  lifted({ node, weight, variance }, inside, outside) {
    const own = this.child[node], whole = inside[node], rest = outside[node];
    const apart = own * whole * (1 - weight) ** 2 + rest * (weight ** 2 * own + whole);
    return { node: this.parents[node], weight: (weight * own + whole) / this.together[node], variance: variance + apart / this.together[node] };
  }

  joined(low, high) {
    const { child, elder, younger } = this, [one, other] = [child[low.node], child[high.node]];
    const middle = Math.max(elder[high.node] - elder[low.node] - one, 0), beside = elder[low.node] + younger[high.node];
    let apart = beside * (low.weight ** 2 * one + middle + high.weight ** 2 * other);
    apart += middle * (one * (1 - low.weight) ** 2 + other * (1 - high.weight) ** 2);
    apart += one * other * (low.weight - high.weight) ** 2;
    const together = this.together[low.node], share = (low.weight * one + middle + high.weight * other) / together;
    return low.variance + high.variance + apart / together + share ** 2 * this.spread[this.parents[low.node]];
  }
}

const part = (some, whole) => (whole > 0 ? some / whole : 0);

/** The variances of sums of the units of tents: from a table of covariances of whole tents. */
class Tents {
  constructor(tables) {
    Object.assign(this, tables);
    if (tables.even) Object.assign(this, { evenUpto: running(tables.even), shared: running(tables.covariances) });
  }

  variance(first, last) {
    if (!this.split) return this.ofUnits(first, last);
    const [low, below] = this.atUnits(first), [high, above] = this.atUnits(last);
    const apart = low.piece === high.piece ? (above - below) ** 2 : above ** 2 + below ** 2;
    return this.ofUnits(low, high) + 2 * this.pair_variance * apart;
  }

  /** A position among the units, of which some have a last cell of its own; and the factor of that pair. */
  atUnits({ piece, share }) {
    const unit = find(this.last, piece), rest = piece < this.last[unit];
    if (!this.split[unit]) return [{ piece: unit, share }, 0];
    return [{ piece: unit, share: ((rest ? 0 : 1) + share) / 2 }, (rest ? -share : share - 1) / 2];
  }

  ofUnits(first, last) {
    const noise = this.table ? this.own(first, last) - this.squares(this.ends(first), this.ends(last)) : this.own_variance * this.alone(first, last);
    if (!this.even) return this.kept ** 2 * noise;
    const average = (1 - this.kept) * this.between(this.evenUpto, this.even, first, last);
    const shared = 2 * this.kept * this.between(this.shared, this.covariances, first, last) + average * this.shared.at(-1);
    return this.kept ** 2 * noise + average * shared;
  }

  alone(first, last) {
    if (first.piece === last.piece) return (last.share - first.share) ** 2;
    return (1 - first.share) ** 2 + last.share ** 2 + (last.piece - first.piece - 1);
  }

  between(upto, units, first, last) {
    return upto[last.piece] + last.share * units[last.piece] - upto[first.piece] - first.share * units[first.piece];
  }

  own(first, last) {
    const { variances, upto } = this;
    if (first.piece === last.piece) return (last.share - first.share) ** 2 * variances[first.piece];
    return (1 - first.share) ** 2 * variances[first.piece] + last.share ** 2 * variances[last.piece] + upto[last.piece] - upto[Math.min(first.piece + 1, last.piece)];
  }

  /** A position as whole tents before one, and parts of it and the next. */
  ends({ piece, share }) {
    const { left, weights, variances, firsts, right_upto: right, left_upto: own, whole } = this;
    const tent = left[piece], begin = firsts[tent], before = firsts[Math.max(tent - 1, 0)], unit = share * variances[piece];
    const after = part(right[piece] - right[begin] + unit * weights[piece], whole[tent + 1]);
    const mine = part(own[piece] - own[begin] + unit * (1 - weights[piece]) + right[begin] - right[before], whole[tent]);
    return { tent, steps: [1 - mine, mine - after, after] };
  }

  squares(low, high) {
    const places = this.whole.length + 1;
    const product = (one, other) => one.steps.reduce((sum, weight, i) => sum + other.steps.reduce((inner, times, j) =>
      inner + weight * times * this.table[(one.tent + i) * places + other.tent + j], 0), 0);
    return product(low, low) - 2 * product(low, high) + product(high, high);
  }
}

/** Pieces of a solved tree or of solved tents: any range. */
class Pieces {
  constructor(model) {
    Object.assign(this, model);
    this.curve = new Curve(model.ends, model.counts.map((each) => each * model.factor));
    this.bare = new Curve(model.ends, model.counts);
    this.parts = new Curve(model.ends, model.shares);
    this.first = Array.from(model.pieces, (_, piece) => find(model.ends, this.start(piece)));
    this.noise = model.model.kind === "tree" ? new Tree(model.model) : new Tents(model.model);
  }

  start(piece) { return piece ? this.pieces[piece - 1] + 1n : 0n; }
  upto(cell) { return this.curve.upto(cell); }

  count(low, high) {
    const value = (this.bare.upto(high) - (low > 0n ? this.bare.upto(low - 1n) : 0)) * this.factor;
    return { value, error: this.error(low, high) };
  }

  /** Where the cells up to one end: the piece, and the share of its count. */
  at(cell) {
    const piece = find(this.pieces, cell), share = this.parts.upto(cell) - this.parts.before[this.first[piece]];
    return { piece, share: Math.min(1, Math.max(0, share)) };
  }

  error(low, high) {
    const inner = low > this.start(find(this.pieces, low)), first = this.at(inner ? low - 1n : low), last = this.at(high);
    if (!inner) first.share = 0;
    const together = first.piece === last.piece;
    let inside = this.scatter(last.piece, together ? last.share - first.share : last.share);
    if (!together) inside += this.scatter(first.piece, 1 - first.share);
    inside += this.doubt(low) + this.doubt(high + 1n);
    return this.widening * Math.sqrt(this.noise.variance(first, last) + inside + this.least_variance);
  }

  /** What a piece adds of which a share is asked for. */
  scatter(piece, share) {
    const held = this.held[piece], variance = share * (1 - share);
    return held * variance + this.clustering[piece] * held ** 2 * Math.max(variance, (1 - share) ** 2);
  }

  doubt(cell) {
    if (!this.doubted.length) return 0;
    const place = find(this.doubted, cell);
    return this.doubted[place] === cell ? this.doubts[place] : 0;
  }
}

/** Independent noisy counts of cells: values and variances add up. */
class Cells {
  constructor(model) { Object.assign(this, model, { curve: model.upto, upto: (cell) => model.upto[Number(cell)] }); }

  count(low, high) {
    const value = (this.sums[Number(high) + 1] - this.sums[Number(low)]) * this.factor;
    return { value, error: Math.sqrt((Number(high - low) + 1) * this.variance) };
  }
}

/** The place of a range in a table of all ranges between n points. */
export const placeOf = (n, first, last) => first * n - (first * (first - 1)) / 2 + last - first;

/** Answers for all ranges between public points. */
class Ranges {
  constructor(model, size) {
    const ends = model.starts.slice(1).map((start) => start - 1n);
    Object.assign(this, model, { ends: [...ends, size - 1n], table: model.upto, upto: (cell) => model.upto[find(this.ends, cell)] });
  }

  count(low, high) {
    const [first, last] = [find(this.starts, low), find(this.ends, high)];
    if (this.starts[first] !== low || this.ends[last] !== high || last < first) return null;
    const place = placeOf(this.starts.length, first, last);
    return { value: this.values[place], error: this.errors[place] };
  }
}

const MODELS = { pieces: Pieces, cells: Cells, ranges: Ranges };

/** The model of a column: `count(low, high)` of cells, and the curve `upto` a cell. */
export const modelOf = ({ model, size }) => new MODELS[model.kind](model, BigInt(size));
