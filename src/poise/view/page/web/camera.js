// A camera that goes round what it looks at: turned, moved and brought closer by mouse, fingers or keys; never jerkily.

const HASTE = 14;

class Camera {
  // `asked` is where it begins, if the scene tells.
  constructor(canvas, radius, asked, moved) {
    this.canvas = canvas;
    this.radius = radius;
    this.asked = asked;
    this.angle = asked ? asked.angle : 40 * Math.PI / 180;
    this.moved = moved;
    this.anchor = [0, 0, 0];
    this.pointers = new Map();
    this.reset();
    Object.assign(this, this.goal);
    canvas.addEventListener("pointerdown", event => this.press(event));
    canvas.addEventListener("pointermove", event => this.drag(event));
    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, event => this.pointers.delete(event.pointerId));
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      this.zoom(Math.exp(clamp(event.deltaY, -120, 120) * (event.deltaMode ? 0.05 : 0.0016)));
    }, { passive: false });
    canvas.addEventListener("contextmenu", event => event.preventDefault());
  }

  get aspect() { return this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight); }

  // As it is asked for; else from the front, a little from the right and from above, with all of it in the picture.
  reset() {
    if (this.asked) {
      const { yaw, pitch, distance, shift } = this.asked;
      this.goal = { yaw, pitch: clamp(pitch, -1.5, 1.55), distance, shift: [...shift] };
      this.moved();
      return;
    }
    const half = Math.atan(Math.tan(this.angle / 2) * Math.min(1, this.aspect));
    this.goal = { yaw: -0.56, pitch: 0.26, distance: 1.12 * this.radius / Math.sin(half), shift: [0, 0, 0] };
    this.moved();
  }

  zoom(factor) {
    this.goal.distance = clamp(this.goal.distance * factor, 0.05 * this.radius, 200 * this.radius);
    this.moved();
  }

  orbit(right, up) {
    this.goal.yaw -= right;
    this.goal.pitch = clamp(this.goal.pitch + up, -1.5, 1.55);
    this.moved();
  }

  pan(right, up) {
    const { right: x, above: y } = this.axes();
    const metres = 2 * Math.tan(this.angle / 2) * this.distance;
    this.goal.shift = add(this.goal.shift, add(scale(x, -right * metres), scale(y, up * metres)));
    this.moved();
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY];
    const height = Math.max(1, this.canvas.clientHeight);
    const dx = (now[0] - before[0]) / height, dy = (now[1] - before[1]) / height;
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = p => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      this.zoom(apart(before) / apart(now));
      this.pan(dx / 2, dy / 2);
    } else if (event.shiftKey || event.buttons & 6) this.pan(dx, dy);
    else this.orbit(3.6 * dx, 3 * dy);
    this.pointers.set(event.pointerId, now);
  }

  // Some seconds later; `anchor` is what is followed. Whether it still moves.
  advance(seconds, anchor) {
    const part = 1 - Math.exp(-HASTE * seconds);
    const soft = 1 - Math.exp(-6 * seconds);
    let rest = 0;
    for (const name of ["yaw", "pitch", "distance"]) {
      const way = this.goal[name] - this[name];
      this[name] += way * part;
      rest = Math.max(rest, Math.abs(way) / (name === "distance" ? this.distance : 1));
    }
    const way = sub(this.goal.shift, this.shift), trek = sub(anchor, this.anchor);
    this.shift = add(this.shift, scale(way, part));
    this.anchor = norm(trek) > 4 * this.distance ? anchor : add(this.anchor, scale(trek, soft));
    return Math.max(rest, norm(way) / this.distance, norm(trek) / this.distance) > 2e-4;
  }

  axes() {
    const c = Math.cos(this.pitch);
    const away = [c * Math.cos(this.yaw), c * Math.sin(this.yaw), Math.sin(this.pitch)];
    const right = [-Math.sin(this.yaw), Math.cos(this.yaw), 0];
    return { away, right, above: cross(away, right) };
  }

  // What the renderer wants to know.
  look() {
    const { away, right, above } = this.axes();
    const target = add(this.anchor, this.shift);
    const eye = add(target, scale(away, this.distance));
    const aspect = this.aspect, slope = Math.tan(this.angle / 2);
    const project = perspective(this.angle, aspect, this.distance * 0.02, this.distance * 60);
    const rays = { right: scale(right, slope * aspect), above: scale(above, slope), ahead: scale(away, -1) };
    return { eye, target, distance: this.distance, view: times(project, lookAt(eye, target, [0, 0, 1])), rays };
  }
}
