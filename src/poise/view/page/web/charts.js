// One chart at a time, under the picture: curves over time, a cursor, and a legend with the numbers at the cursor.

const CURVES = ["#2f86d6", "#e0702a", "#3d9e58", "#b456b8", "#c9a227", "#d64550", "#4aa8a8", "#7a6ad8"];
const LEFT = 52, RIGHT = 10, TOP = 8, BOTTOM = 20;

// A number in few characters.
function brief(x) {
  const size = Math.abs(x);
  if (size !== 0 && (size < 0.001 || size >= 100000)) return x.toExponential(1);
  return String(Number(x.toPrecision(4)));
}

// Round numbers from low to high, at most `most`.
function ticks(low, high, most) {
  const rough = (high - low) / Math.max(1, most) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(k => k * power >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

class Charts {
  constructor(list, times, parts) {
    this.list = list;
    this.times = times;
    Object.assign(this, parts);
    const groups = new Map();
    list.forEach((chart, k) => {
      if (!groups.has(chart.group)) {
        const group = document.createElement("optgroup");
        group.label = chart.group;
        this.choice.append(group);
        groups.set(chart.group, group);
      }
      const option = document.createElement("option");
      option.value = k;
      option.textContent = chart.name;
      groups.get(chart.group).append(option);
    });
    this.choice.addEventListener("change", () => this.choose(Number(this.choice.value)));
    const seek = event => event.buttons & 1 && this.sought(this.timeAt(event.offsetX));
    this.canvas.addEventListener("pointerdown", event => {
      this.canvas.setPointerCapture(event.pointerId);
      seek(event);
    });
    this.canvas.addEventListener("pointermove", seek);
    this.back = document.createElement("canvas");
  }

  get span() { return this.times[this.times.length - 1] - this.times[0] || 1; }

  timeAt(x) {
    const width = Math.max(1, this.canvas.clientWidth - LEFT - RIGHT);
    return this.times[0] + clamp((x - LEFT) / width, 0, 1) * this.span;
  }

  async choose(k) {
    const chart = this.list[k];
    const stream = await unpack(chart.values);
    const gaps = new Set((chart.gaps || []).map(([frame, curve]) => frame * stream.width + curve));
    this.chart = chart;
    this.count = stream.width;
    this.numbers = Float64Array.from(stream.whole, (x, i) => gaps.has(i) ? NaN : x * stream.step + chart.low);
    this.low = Infinity;
    this.high = -Infinity;
    for (const x of this.numbers) {
      if (x < this.low) this.low = x;
      if (x > this.high) this.high = x;
    }
    if (!(this.high > this.low)) {
      const about = Number.isFinite(this.low) ? this.low : 0;
      [this.low, this.high] = [about - 1, about + 1];
    }
    const room = 0.06 * (this.high - this.low);
    this.low -= room;
    this.high += room;
    this.legend.replaceChildren(...chart.curves.map((name, c) => {
      const item = document.createElement("li");
      item.style.setProperty("--curve", CURVES[c % CURVES.length]);
      const label = document.createElement("span"), number = document.createElement("b");
      label.textContent = name;
      item.append(label, number);
      return item;
    }));
    this.canvas.setAttribute("aria-label", `Chart: ${chart.name}`);
    this.stale = true;
    this.changed();
  }

  // Axes and curves, drawn once for a size.
  paintBack(ratio, ink) {
    const { back } = this;
    const width = back.width / ratio, height = back.height / ratio;
    const pen = back.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    const x = time => LEFT + (time - this.times[0]) / this.span * (width - LEFT - RIGHT);
    const y = value => TOP + (this.high - value) / (this.high - this.low) * (height - TOP - BOTTOM);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of ticks(this.low, this.high, (height - TOP - BOTTOM) / 22)) {
      pen.strokeStyle = ink.line;
      pen.beginPath();
      pen.moveTo(LEFT, y(value));
      pen.lineTo(width - RIGHT, y(value));
      pen.stroke();
      pen.fillStyle = ink.text;
      pen.fillText(brief(value), LEFT - 7, y(value));
    }
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    for (const time of ticks(this.times[0], this.times[0] + this.span, (width - LEFT - RIGHT) / 70))
      pen.fillText(`${brief(time)} s`, x(time), height - 5);
    for (let c = 0; c < this.count; c++) this.paintCurve(pen, c, x, y);
  }

  paintCurve(pen, curve, x, y) {
    pen.strokeStyle = CURVES[curve % CURVES.length];
    pen.lineWidth = 1.6;
    pen.lineJoin = "round";
    pen.beginPath();
    let broken = true;
    for (let k = 0; k < this.times.length; k++) {
      const value = this.numbers[k * this.count + curve];
      if (Number.isNaN(value)) { broken = true; continue; }
      if (broken) pen.moveTo(x(this.times[k]), y(value)); else pen.lineTo(x(this.times[k]), y(value));
      broken = false;
    }
    pen.stroke();
  }

  draw(time, frame, ink) {
    if (!this.chart || !this.canvas.clientWidth) return;
    const { canvas, back } = this;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (this.stale || back.width !== width || back.height !== height || this.ink !== ink) {
      canvas.width = back.width = width;
      canvas.height = back.height = height;
      this.paintBack(ratio, ink);
      this.ink = ink;
      this.stale = false;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.drawImage(back, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const x = LEFT + (time - this.times[0]) / this.span * (canvas.clientWidth - LEFT - RIGHT);
    pen.strokeStyle = ink.strong;
    pen.lineWidth = 1.2;
    pen.beginPath();
    pen.moveTo(x, TOP);
    pen.lineTo(x, canvas.clientHeight - BOTTOM);
    pen.stroke();
    [...this.legend.children].forEach((item, c) => {
      const value = this.numbers[frame * this.count + c];
      const text = Number.isNaN(value) ? "–" : `${brief(value)} ${this.chart.unit}`.trim();
      if (item.lastChild.textContent !== text) item.lastChild.textContent = text;
    });
  }
}
