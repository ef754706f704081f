// Skins: surfaces whose every vertex goes along with some links, each by a weight.

class Skin {
  static async read(data) {
    const skin = new Skin();
    const [vertices, faces, vertex, weight] = await Promise.all(
      [data.vertices, data.faces, data.vertex, data.weight].map(unpack));
    skin.color = data.color;
    skin.bones = data.bones;
    skin.count = data.count;
    skin.rest = values(vertices);
    skin.faces = faces.whole;
    skin.vertex = vertex.whole;
    skin.weight = values(weight);
    skin.points = new Float32Array(3 * skin.faces.length);
    skin.normals = new Float32Array(3 * skin.faces.length);
    return skin;
  }

  form() { return { points: this.points, normals: this.normals }; }

  // Where vertices are, with links at their poses: x = Σ w · pose · bone · v, in a sum that is divided by that of the weights.
  moved(poses) {
    const n = this.rest.length / 3;
    const sum = new Float64Array(this.rest.length), total = new Float64Array(n);
    let k = 0;
    this.bones.forEach((bone, b) => {
      let { position, turn } = bone;
      if (bone.link >= 0) {
        const pose = poses[bone.link];
        position = add(pose.position, turned(pose.turn, position));
        turn = product(pose.turn, turn);
      }
      const m = placement(position, turn, [1, 1, 1]);
      for (const end = k + this.count[b]; k < end; k++) {
        const i = 3 * this.vertex[k], w = this.weight[k];
        const x = this.rest[i], y = this.rest[i + 1], z = this.rest[i + 2];
        sum[i] += w * (m[0] * x + m[1] * y + m[2] * z + m[3]);
        sum[i + 1] += w * (m[4] * x + m[5] * y + m[6] * z + m[7]);
        sum[i + 2] += w * (m[8] * x + m[9] * y + m[10] * z + m[11]);
        total[i / 3] += w;
      }
    });
    for (let i = 0; i < sum.length; i++) sum[i] /= total[(i - i % 3) / 3] || 1;
    return sum;
  }

  bend(poses) {
    const now = this.moved(poses);
    const { faces, points, normals } = this;
    const smooth = new Float64Array(now.length);
    for (let f = 0; f < faces.length; f += 3) {
      const [a, b, c] = [faces[f], faces[f + 1], faces[f + 2]].map(v => now.subarray(3 * v, 3 * v + 3));
      const area = cross(sub(b, a), sub(c, a));
      for (let k = 0; k < 3; k++)
        for (let j = 0; j < 3; j++) smooth[3 * faces[f + k] + j] += area[j];
    }
    for (let f = 0; f < faces.length; f++) {
      const v = 3 * faces[f];
      const normal = unit([smooth[v], smooth[v + 1], smooth[v + 2]]);
      for (let j = 0; j < 3; j++) {
        points[3 * f + j] = now[v + j];
        normals[3 * f + j] = normal[j];
      }
    }
    if (this.mesh) this.mesh.bent.stale = true;
  }
}
