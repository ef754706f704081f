// Vectors are arrays of three, quaternions of four (w, x, y, z), matrices of sixteen, column by column.

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const norm = a => Math.hypot(a[0], a[1], a[2]);
const unit = a => scale(a, 1 / (norm(a) || 1));
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

// A vector turned by a unit quaternion: v + 2 w (u × v) + 2 u × (u × v).
function turned(q, v) {
  const u = [q[1], q[2], q[3]];
  const t = scale(cross(u, v), 2);
  return add(add(v, scale(t, q[0])), cross(u, t));
}

function product(a, b) {
  return [
    a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
    a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
    a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
    a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
  ];
}

// From one unit quaternion to another along the shorter arc, at an even pace.
function slerp(a, b, t) {
  let c = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
  const sign = c < 0 ? -1 : 1;
  c = Math.min(c * sign, 1);
  const angle = Math.acos(c);
  const s = Math.sin(angle);
  // nearly the same: straight between them, which is the limit
  const u = s > 1e-4 ? Math.sin((1 - t) * angle) / s : 1 - t;
  const w = sign * (s > 1e-4 ? Math.sin(t * angle) / s : t);
  const q = [0, 1, 2, 3].map(k => u * a[k] + w * b[k]);
  const n = Math.hypot(...q) || 1;
  return q.map(x => x / n);
}

// The unit quaternion that takes z to a direction.
function aim(direction) {
  const [x, y, z] = unit(direction);
  if (z < -0.999999) return [0, 1, 0, 0];
  const w = 1 + z;
  const n = Math.hypot(w, x, y);
  return [w / n, -y / n, x / n, 0];
}

// The three rows of the 3 × 4 matrix that scales, turns and moves.
function placement(position, q, size) {
  const [w, x, y, z] = q;
  const [a, b, c] = size;
  return [
    (1 - 2 * (y * y + z * z)) * a, 2 * (x * y - w * z) * b, 2 * (x * z + w * y) * c, position[0],
    2 * (x * y + w * z) * a, (1 - 2 * (x * x + z * z)) * b, 2 * (y * z - w * x) * c, position[1],
    2 * (x * z - w * y) * a, 2 * (y * z + w * x) * b, (1 - 2 * (x * x + y * y)) * c, position[2],
  ];
}

function times(a, b) {
  const out = new Float32Array(16);
  for (let column = 0; column < 4; column++)
    for (let row = 0; row < 4; row++) {
      let sum = 0;
      for (let k = 0; k < 4; k++) sum += a[k * 4 + row] * b[column * 4 + k];
      out[column * 4 + row] = sum;
    }
  return out;
}

// From the world to the axes of an eye: right, up and back.
function lookAt(eye, target, up) {
  const back = unit(sub(eye, target));
  const right = unit(cross(up, back));
  const above = cross(back, right);
  return new Float32Array([
    right[0], above[0], back[0], 0, right[1], above[1], back[1], 0, right[2], above[2], back[2], 0,
    -dot(right, eye), -dot(above, eye), -dot(back, eye), 1,
  ]);
}

function perspective(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2);
  const d = 1 / (near - far);
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) * d, -1, 0, 0, 2 * far * near * d, 0]);
}

function orthographic(half, near, far) {
  const d = 1 / (near - far);
  return new Float32Array([1 / half, 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, 2 * d, 0, 0, 0, (far + near) * d, 1]);
}
