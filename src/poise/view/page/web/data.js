// What Python packed (packing.py): differences from frame to frame, bytes sorted by rank, deflated, in base64.

async function unpack(stream) {
  const bytes = Uint8Array.from(atob(stream.data), c => c.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const ranks = new Uint8Array(await new Response(inflated).arrayBuffer());
  const n = ranks.length / 4;
  const width = stream.shape.slice(1).reduce((a, b) => a * b, 1);
  const whole = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    const step = ranks[i] | (ranks[n + i] << 8) | (ranks[2 * n + i] << 16) | (ranks[3 * n + i] << 24);
    whole[i] = (i < width ? 0 : whole[i - width]) + step;
  }
  return { whole, step: stream.step, width, length: stream.shape[0] };
}

const values = stream => Float64Array.from(stream.whole, x => x * stream.step);

// A motion: where links are at any time, between the frames that it has.
class Motion {
  static async read(streams) {
    const motion = new Motion();
    const [time, position, turn] = await Promise.all([streams.time, streams.position, streams.turn].map(unpack));
    motion.times = values(time);
    motion.position = position;
    motion.turn = turn;
    motion.links = streams.position.shape[1];
    return motion;
  }

  get start() { return this.times[0]; }
  get end() { return this.times[this.times.length - 1]; }

  // The last frame that is not after a time.
  frame(time) {
    let low = 0, high = this.times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.times[middle] <= time + 1e-9) low = middle; else high = middle - 1;
    }
    return low;
  }

  nearest(time) {
    const k = this.frame(time);
    return k + 1 < this.times.length && this.times[k + 1] - time < time - this.times[k] ? k + 1 : k;
  }

  positionAt(frame, link) {
    const { whole, step, width } = this.position;
    const k = frame * width + link * 3;
    return [whole[k] * step, whole[k + 1] * step, whole[k + 2] * step];
  }

  turnAt(frame, link) {
    const { whole, step, width } = this.turn;
    const k = frame * width + link * 4;
    return [whole[k] * step, whole[k + 1] * step, whole[k + 2] * step, whole[k + 3] * step];
  }

  pose(time, link) {
    const k = this.frame(time);
    const next = Math.min(k + 1, this.times.length - 1);
    const span = this.times[next] - this.times[k];
    const t = span > 0 ? clamp((time - this.times[k]) / span, 0, 1) : 0;
    const a = this.positionAt(k, link), b = this.positionAt(next, link);
    return { position: add(a, scale(sub(b, a), t)), turn: slerp(this.turnAt(k, link), this.turnAt(next, link), t) };
  }

  poses(time) {
    return Array.from({ length: this.links }, (_, link) => this.pose(time, link));
  }
}

// Contacts of each frame: points, and the forces there.
class Contacts {
  static async read(streams) {
    const contacts = new Contacts();
    const [count, point, force] = await Promise.all([streams.count, streams.point, streams.force].map(unpack));
    contacts.start = [0];
    count.whole.forEach(n => contacts.start.push(contacts.start[contacts.start.length - 1] + n));
    contacts.points = values(point);
    contacts.forces = values(force);
    contacts.typical = streams.typical;
    return contacts;
  }

  of(frame) {
    const found = [];
    for (let k = 3 * this.start[frame]; k < 3 * this.start[frame + 1]; k += 3)
      found.push({ point: [...this.points.subarray(k, k + 3)], force: [...this.forces.subarray(k, k + 3)] });
    return found;
  }
}
