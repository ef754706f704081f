// Triangles of every kind of shape: three corners each, with the normals of the surface there.

class Form {
  constructor() {
    this.points = [];
    this.normals = [];
  }

  triangle(a, b, c, na, nb, nc) {
    this.points.push(...a, ...b, ...c);
    this.normals.push(...na, ...nb, ...nc);
  }

  // A surface of four corners, seen from where they go round counter-clockwise.
  patch(corners, normals) {
    this.triangle(corners[0], corners[1], corners[2], normals[0], normals[1], normals[2]);
    this.triangle(corners[0], corners[2], corners[3], normals[0], normals[2], normals[3]);
  }

  arrays() {
    return { points: new Float32Array(this.points), normals: new Float32Array(this.normals) };
  }
}

// What a profile of points (radius, height) with normals (outward, upward) sweeps about z, in some steps.
function lathe(profile, steps = 32) {
  const form = new Form();
  const at = (k, [r, z]) => [r * Math.cos(k * 2 * Math.PI / steps), r * Math.sin(k * 2 * Math.PI / steps), z];
  for (let i = 0; i + 1 < profile.length; i++) {
    const [[low, lowNormal], [high, highNormal]] = [profile[i], profile[i + 1]];
    if (low[0] === high[0] && low[1] === high[1]) continue;
    for (let k = 0; k < steps; k++)
      form.patch([at(k, low), at(k + 1, low), at(k + 1, high), at(k, high)],
        [at(k, lowNormal), at(k + 1, lowNormal), at(k + 1, highNormal), at(k, highNormal)]);
  }
  return form.arrays();
}

function arc(radius, centre, from, to, pieces = 8) {
  return Array.from({ length: pieces + 1 }, (_, k) => {
    const angle = from + (to - from) * k / pieces;
    const direction = [Math.cos(angle), Math.sin(angle)];
    return [[radius * direction[0], centre + radius * direction[1]], direction];
  });
}

const QUARTER = Math.PI / 2;
const sphereForm = () => lathe(arc(1, 0, -QUARTER, QUARTER, 20));
const capsuleForm = (radius, half) => lathe([...arc(radius, -half, -QUARTER, 0), ...arc(radius, half, 0, QUARTER)]);
const cylinderForm = () => lathe([[[0, -1], [0, -1]], [[1, -1], [0, -1]], [[1, -1], [1, 0]], [[1, 1], [1, 0]],
  [[1, 1], [0, 1]], [[0, 1], [0, 1]]]);
// For marks, which are many and small: a ball, a cylinder without ends, a cone with its base at 0 and its tip at 1.
const beadForm = () => lathe(arc(1, 0, -QUARTER, QUARTER), 16);
const rodForm = () => lathe([[[1, -1], [1, 0]], [[1, 1], [1, 0]]], 10);
const coneForm = () => lathe([[[0, 0], [0, -1]], [[1, 0], [0, -1]], [[1, 0], [0.7, 0.7]], [[0, 1], [0.7, 0.7]]], 20);

function boxForm() {
  const form = new Form();
  for (let axis = 0; axis < 3; axis++)
    for (const side of [-1, 1]) {
      const corner = (u, v) => {
        const point = [0, 0, 0];
        point[axis] = side;
        point[(axis + 1) % 3] = u;
        point[(axis + 2) % 3] = v * side;
        return point;
      };
      const normal = [0, 0, 0];
      normal[axis] = side;
      form.patch([corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)], [normal, normal, normal, normal]);
    }
  return form.arrays();
}

// Triangles of a mesh. Where faces meet at less than 40° the surface is shaded as if it were round.
function meshForm(vertices, faces) {
  const count = faces.length / 3;
  const corner = (f, k) => Array.from(vertices.subarray(3 * faces[3 * f + k], 3 * faces[3 * f + k] + 3));
  const areas = [], flat = [], about = new Map();
  for (let f = 0; f < count; f++) {
    const a = corner(f, 0);
    const area = cross(sub(corner(f, 1), a), sub(corner(f, 2), a));
    areas.push(area);
    flat.push(unit(area));
    for (let k = 0; k < 3; k++) {
      const vertex = faces[3 * f + k];
      if (!about.has(vertex)) about.set(vertex, []);
      about.get(vertex).push(f);
    }
  }
  const points = new Float32Array(9 * count), normals = new Float32Array(9 * count);
  for (let f = 0; f < count; f++)
    for (let k = 0; k < 3; k++) {
      let sum = [0, 0, 0];
      for (const other of about.get(faces[3 * f + k]))
        if (dot(flat[f], flat[other]) > 0.766) sum = add(sum, areas[other]);
      points.set(corner(f, k), 9 * f + 3 * k);
      normals.set(unit(sum), 9 * f + 3 * k);
    }
  return { points, normals };
}
