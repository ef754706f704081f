// What is on the stage at a time: shapes at their poses, a ghost, bones, contacts, trails.

const MARKS = { bone: [0.98, 0.78, 0.15, 1], contact: [0.90, 0.30, 0.12, 1] };
const TRAILS = [[0.16, 0.55, 0.85, 1], [0.85, 0.32, 0.48, 1], [0.30, 0.65, 0.33, 1], [0.60, 0.42, 0.80, 1]];
const TRAIL_SECONDS = 4;
const TRAIL_PIECES = 160;
const LEVEL = [1, 0, 0, 0];

class Stage {
  static async read(data) {
    const stage = new Stage();
    stage.data = data;
    stage.motion = await Motion.read(data.poses);
    stage.ghost = data.ghost && await Motion.read(data.ghost);
    stage.contacts = data.contacts && await Contacts.read(data.contacts);
    stage.forms = await Promise.all(data.meshes.map(async mesh =>
      meshForm(values(await unpack(mesh.vertices)), (await unpack(mesh.faces)).whole)));
    stage.skins = await Promise.all((data.skins || []).map(Skin.read));
    return stage;
  }

  // Meshes on the card; again, should the card have forgotten them.
  load(renderer) {
    const made = new Map();
    const once = (key, form) => made.get(key) || made.set(key, renderer.mesh(form())).get(key);
    const units = { sphere: sphereForm, ellipsoid: sphereForm, box: boxForm, cylinder: cylinderForm };
    this.shapes = this.data.shapes.map(shape => {
      const [a, b, c] = shape.size;
      let mesh = null, size = [1, 1, 1];
      if (shape.kind === "capsule") mesh = once(`capsule ${a} ${b}`, () => capsuleForm(a, b));
      else if (shape.kind in units) mesh = once(shape.kind === "ellipsoid" ? "sphere" : shape.kind, units[shape.kind]);
      else if (shape.mesh !== undefined) mesh = once(`mesh ${shape.mesh}`, () => this.forms[shape.mesh]);
      if (shape.kind === "sphere") size = [a, a, a];
      if (shape.kind === "cylinder") size = [a, a, b];
      if (shape.kind === "box" || shape.kind === "ellipsoid") size = [a, b, c];
      return { ...shape, mesh, size };
    });
    this.skins.forEach(skin => { skin.mesh = renderer.mesh(skin.form(), true); });
    this.rod = once("rod", rodForm);
    this.ball = once("bead", beadForm);
    this.tip = once("cone", coneForm);
  }

  get unit() { return this.data.view.radius; }

  // Everything at a time, for the renderer. `show` says what of it.
  scene(time, show, camera, theme) {
    const poses = this.motion.poses(time);
    const solids = new Map(), glass = new Map(), marks = new Map(), faded = new Map(), ghost = new Map();
    const fades = shape => show.skeleton && shape.link >= 0 && this.jointed(shape.link);
    this.place(poses, [0, 0, 0], shape => {
      const color = fades(shape) ? [...shape.color.slice(0, 3), shape.color[3] * 0.45] : shape.color;
      return [color[3] < 1 ? glass : solids, color];
    });
    for (const skin of this.skins) {
      skin.bend(poses);
      this.put(skin.color[3] < 1 ? glass : solids, skin.mesh, [0, 0, 0], LEVEL, [1, 1, 1], skin.color);
    }
    // what is faint only to show its bones casts a shadow all the same
    this.place(poses, [0, 0, 0], shape => fades(shape) && shape.color[3] >= 1 ? [faded, shape.color] : null);
    if (this.ghost && show.ghost !== "off") {
      const shift = show.ghost === "beside" ? this.data.ghost.shift : [0, 0, 0];
      this.place(this.ghost.poses(time), shift, shape =>
        shape.link >= 0 && this.data.ghost.links.includes(shape.link) ? [ghost, theme.ghost] : null);
    }
    const thick = this.unit * 0.012;
    if (show.skeleton) this.bones(poses, marks, thick);
    if (show.contacts && this.contacts) this.arrows(time, marks, thick);
    show.trails.forEach((link, k) => this.trail(link, time, marks, thick * 0.7, TRAILS[k % TRAILS.length]));
    const list = batches => [...batches.values()];
    return {
      floors: this.floors(camera, theme), solids: list(solids), casters: [...list(solids), ...list(faded)],
      glass: list(glass), marks: list(marks), ghost: list(ghost), push: show.ghost === "over" ? 0.06 * this.unit : 0,
    };
  }

  put(batches, mesh, position, turn, size, color) {
    if (!batches.has(mesh)) batches.set(mesh, new Batch(mesh));
    batches.get(mesh).add(position, turn, size, color);
  }

  place(poses, shift, choose) {
    for (const shape of this.shapes) {
      const chosen = shape.mesh && choose(shape);
      if (!chosen) continue;
      let { position, turn } = shape;
      if (shape.link >= 0) {
        const pose = poses[shape.link];
        position = add(add(pose.position, turned(pose.turn, position)), shift);
        turn = product(pose.turn, turn);
      }
      this.put(chosen[0], shape.mesh, position, turn, shape.size, chosen[1]);
    }
  }

  jointed(link) {
    const { parent } = this.data;
    return parent[link] >= 0 || parent.includes(link);
  }

  rodBetween(batches, a, b, radius, color) {
    const span = sub(b, a), length = norm(span);
    if (length > 0) this.put(batches, this.rod, add(a, scale(span, 0.5)), aim(span), [radius, radius, length / 2], color);
  }

  bones(poses, marks, thick) {
    poses.forEach(({ position }, link) => {
      if (!this.jointed(link)) return;
      this.put(marks, this.ball, position, LEVEL, [1.7 * thick, 1.7 * thick, 1.7 * thick], MARKS.bone);
      const parent = this.data.parent[link];
      if (parent >= 0) this.rodBetween(marks, poses[parent].position, position, thick, MARKS.bone);
    });
  }

  arrows(time, marks, thick) {
    for (const { point, force } of this.contacts.of(this.motion.nearest(time))) {
      this.put(marks, this.ball, point, LEVEL, [1.3 * thick, 1.3 * thick, 1.3 * thick], MARKS.contact);
      const size = norm(force);
      const length = Math.min(this.unit * 0.4 * size / this.contacts.typical, this.unit * 2);
      if (length < thick) continue;
      const along = scale(force, 1 / size);
      const head = Math.min(5 * thick, 0.6 * length);
      const neck = add(point, scale(along, length - head));
      this.rodBetween(marks, point, neck, 0.8 * thick, MARKS.contact);
      this.put(marks, this.tip, neck, aim(along), [0.45 * head, 0.45 * head, head], MARKS.contact);
    }
  }

  trail(link, time, marks, thick, color) {
    const last = this.motion.frame(time), first = this.motion.frame(time - TRAIL_SECONDS);
    const step = Math.max(1, Math.ceil((last - first) / TRAIL_PIECES));
    let here = this.motion.pose(time, link).position;
    // pieces begin at multiples of the step, so that they stay where they are as time goes on
    for (let k = last - last % step; k >= first; k -= step) {
      const before = this.motion.positionAt(k, link);
      const age = clamp((time - this.motion.times[k]) / TRAIL_SECONDS, 0, 1);
      this.rodBetween(marks, here, before, thick * (1 - 0.8 * age), color);
      here = before;
    }
  }

  // Planes that are seen from above, about the point below what is looked at.
  floors(camera, theme) {
    const floors = [];
    for (const shape of this.shapes) {
      if (shape.kind !== "plane") continue;
      const axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(axis => turned(shape.turn, axis));
      if (dot(sub(camera.eye, shape.position), axes[2]) <= 0) continue;
      const apart = sub(camera.target, shape.position);
      const middle = sub(camera.target, scale(axes[2], dot(apart, axes[2])));
      const period = 2 * this.square;
      const phase = [dot(apart, axes[0]), dot(apart, axes[1])].map(x => x - period * Math.floor(x / period));
      const most = Math.max(...shape.color.slice(0, 3), 0.001);
      const tint = shape.color.slice(0, 3).map(c => c / most);
      const colored = tone => tone.map((c, k) => c * tint[k]);
      const fade = 7 * camera.distance;
      floors.push({
        middle, phase, axes: new Float32Array(axes.flat()), square: this.square, fade, reach: 4 * fade,
        light: colored(theme.light), dark: colored(theme.dark),
      });
    }
    return floors;
  }
}
