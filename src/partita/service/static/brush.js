// A range on one axis, or a rectangle on two: by mouse, by touch, and by keyboard.

import { s } from "./dom.js";

const CLICK = 4, FINE = 200, COARSE = 10;
const put = (element, values) => Object.entries(values).forEach(([name, value]) => element.setAttribute(name, value));

/** A range of cells for each axis; null is everything. `moved(ranges, done)` hears of changes. */
export class Brush {
  constructor(frame, axes, ranges, moved) {
    Object.assign(this, { frame, axes, moved, ranges });
    this.ground = s("rect", { class: "ground", x: frame.left, y: frame.top, width: frame.width, height: frame.height });
    this.chosen = s("rect", { class: "chosen" });
    this.handles = axes.flatMap((axis, side) => [0, 1].map((end) => this.handle(axis, side, end)));
    this.element = s("g", { class: axes[1] ? "brush both" : "brush" }, this.ground, this.chosen, this.handles);
    this.ground.onpointerdown = (event) => this.drag(event, this.drawn(event));
    this.chosen.onpointerdown = (event) => this.drag(event, this.carried(event));
    this.element.onkeydown = ({ key }) => { if (key === "Escape") this.set(null, true); };
    this.draw();
  }

  handle(axis, side, end) {
    const handle = s("g", { class: "handle", role: "slider", tabindex: 0, "aria-label": `${axis.name}, ${["from", "to"][end]}`,
      "aria-orientation": side ? "vertical" : "horizontal", "aria-valuemin": axis.first, "aria-valuemax": axis.last },
    s("rect", { class: "reach", width: 24, height: 24 }), s("path"), s("rect", { class: "grip", rx: 3 }));
    handle.addEventListener("pointerdown", (event) => this.drag(event, ({ cells }) => this.ended(side, end, cells[side])));
    handle.addEventListener("keydown", (event) => this.key(event, side, end));
    return handle;
  }

  get shown() { return this.ranges ?? this.axes.map(({ first, last }) => [first, last]); }

  set(asked, done) {
    const ranges = asked?.map((range, side) => this.axes[side].snap(range));
    const all = ranges?.every(([low, high], side) => low <= this.axes[side].first && high >= this.axes[side].last);
    this.ranges = all ? null : ranges;
    this.draw();
    this.moved(this.ranges, done);
  }

  /** Where the pointer is: in pixels, and in cells. */
  under({ clientX, clientY }) {
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(this.element.getScreenCTM().inverse()), { frame } = this;
    const shares = [(x - frame.left) / frame.width, (frame.bottom - y) / frame.height];
    return { x, y, cells: this.axes.map((axis, side) => axis.under(shares[side])) };
  }

  /** A new range, from where the pointer went down; a click clears. */
  drawn(event) {
    const from = this.under(event);
    return ({ x, y, cells }) => (Math.hypot(x - from.x, y - from.y) < CLICK ? null
      : cells.map((cell, side) => [Math.min(cell, from.cells[side]), Math.max(cell, from.cells[side])]));
  }

  carried(event) {
    const from = this.under(event).cells, ranges = this.shown;
    return ({ cells }) => ranges.map(([low, high], side) => {
      const { first, last } = this.axes[side], by = Math.max(first - low, Math.min(last - high, cells[side] - from[side]));
      return [low + by, high + by];
    });
  }

  ended(side, end, cell) {
    const ranges = this.shown.map((range) => [...range]);
    ranges[side][end] = end ? Math.max(ranges[side][0], cell) : Math.min(ranges[side][1], cell);
    return ranges;
  }

  drag(event, ranges) {
    if (event.button) return;
    event.preventDefault();
    const target = event.currentTarget, move = (each) => this.set(ranges(this.under(each)), each.type === "pointerup");
    target.setPointerCapture(event.pointerId);
    target.focus({ preventScroll: true });
    target.onpointermove = target.onpointerup = move;
    target.onlostpointercapture = () => { target.onpointermove = target.onpointerup = null; };
  }

  key(event, side, end) {
    const axis = this.axes[side], cell = this.shown[side][end], step = Math.max(1, Math.round(axis.cells / FINE));
    const far = COARSE * step, by = event.shiftKey ? far : step, to = (steps) => axis.moved(cell, steps, end);
    const next = { ArrowLeft: to(-by), ArrowDown: to(-by), ArrowRight: to(by), ArrowUp: to(by),
      PageDown: to(-far), PageUp: to(far), Home: axis.first, End: axis.last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.set(this.ended(side, end, axis.clamp(next)), true);
  }

  draw() {
    const { frame, axes: [x, y], shown: [across, up] } = this;
    const [left, right] = [frame.x(x.at(across[0])), frame.x(x.at(across[1] + 1))];
    const [bottom, top] = y ? [frame.y(y.at(up[0])), frame.y(y.at(up[1] + 1))] : [frame.bottom, frame.top];
    put(this.chosen, { x: left, y: top, width: Math.max(1, right - left), height: Math.max(1, bottom - top) });
    this.element.classList.toggle("empty", !this.ranges);
    [[left, top, left, bottom], [right, top, right, bottom], [left, bottom, right, bottom], [left, top, right, top]]
      .slice(0, this.handles.length).forEach((ends, place) => this.drawHandle(place, ...ends));
  }

  drawHandle(place, x1, y1, x2, y2) {
    const side = place >> 1, cell = this.shown[side][place & 1], handle = this.handles[place], [reach, edge, grip] = handle.children;
    const x = (x1 + x2) / 2, y = (y1 + y2) / 2, [wide, high] = side ? [24, 7] : [7, 24];
    put(edge, { d: `M${x1} ${y1}L${x2} ${y2}` });
    put(reach, { x: x - 12, y: y - 12 });
    put(grip, { x: x - wide / 2, y: y - high / 2, width: wide, height: high });
    put(handle, { "aria-valuenow": cell, "aria-valuetext": this.axes[side].label(cell) });
  }
}
