// Draws batches of equal meshes with WebGL 2: a sky, floors, solids with soft shadows, translucent ones, marks.

const SHADOW_SIDE = 2048;
const PER_INSTANCE = 16;
// Pixels of the picture for one of the page, at most, and samples of a shadow: for cards, and for processors without one.
const QUALITY = [{ ratio: 2, taps: 20 }, { ratio: 1, taps: 8 }, { ratio: 0.7, taps: 4 }];

class Batch {
  constructor(mesh) {
    this.mesh = mesh;
    this.numbers = [];
  }

  get count() { return this.numbers.length / PER_INSTANCE; }

  add(position, turn, size, color) {
    this.numbers.push(...placement(position, turn, size), ...color);
  }
}

class Renderer {
  constructor(canvas, quality = 0) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: false });
    if (!gl) throw new Error("WebGL 2 is not there");
    this.canvas = canvas;
    this.gl = gl;
    this.quality = quality;
    this.solid = this.program(PLACED, SOLID);
    this.depth = this.program(PLACED, DEPTH);
    this.floor = this.program(FLOOR_PLACED, FLOOR);
    this.sky = this.program(SKY_PLACED, SKY);
    this.empty = gl.createVertexArray();
    this.sheet = this.mesh({
      points: new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, -1, 0, 1, 1, 0, -1, 1, 0]),
      normals: new Float32Array(18),
    });
    this.makeShadows();
  }

  program(vertex, fragment) {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost())
        throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
      throw new Error(gl.getProgramInfoLog(program));
    const uniforms = {};
    const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) || 0;
    for (let k = 0; k < count; k++) {
      const { name, type } = gl.getActiveUniform(program, k);
      uniforms[name] = { place: gl.getUniformLocation(program, name), type };
    }
    return { program, uniforms };
  }

  use(program, given) {
    const { gl } = this;
    gl.useProgram(program.program);
    for (const [name, { place, type }] of Object.entries(program.uniforms)) {
      const value = given[name];
      if (type === gl.FLOAT_MAT4) gl.uniformMatrix4fv(place, false, value);
      else if (type === gl.FLOAT_MAT3) gl.uniformMatrix3fv(place, false, value);
      else if (type === gl.FLOAT_VEC3) gl.uniform3fv(place, value);
      else if (type === gl.FLOAT_VEC2) gl.uniform2fv(place, value);
      else if (type === gl.FLOAT) gl.uniform1f(place, value);
      else gl.uniform1i(place, 0);
    }
  }

  // Points and normals on the card, with room for instances. A mesh that bends keeps its form, and is sent when it changed.
  mesh({ points, normals }, bends = false) {
    const { gl } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const buffers = [points, normals].map((numbers, place) => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, numbers, bends ? gl.DYNAMIC_DRAW : gl.STATIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
      return buffer;
    });
    const instances = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, instances);
    for (let k = 0; k < 4; k++) {
      gl.enableVertexAttribArray(2 + k);
      gl.vertexAttribPointer(2 + k, 4, gl.FLOAT, false, 4 * PER_INSTANCE, 16 * k);
      gl.vertexAttribDivisor(2 + k, 1);
    }
    gl.bindVertexArray(null);
    return { array, instances, count: points.length / 3, bent: bends ? { buffers, numbers: [points, normals], stale: false } : null };
  }

  makeShadows() {
    const { gl } = this;
    this.shadows = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.shadows);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW_SIDE, SHADOW_SIDE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.LINEAR);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL);
    this.target = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadows, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  // Makes the canvas as sharp as the screen is; whether that changed anything.
  fit() {
    const { canvas } = this;
    const ratio = Math.min(window.devicePixelRatio || 1, QUALITY[this.quality].ratio);
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width === width && canvas.height === height) return false;
    canvas.width = width;
    canvas.height = height;
    return true;
  }

  send(batch) {
    const { gl } = this;
    const { bent } = batch.mesh;
    if (bent && bent.stale) {
      bent.buffers.forEach((buffer, k) => {
        gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
        gl.bufferSubData(gl.ARRAY_BUFFER, 0, bent.numbers[k]);
      });
      bent.stale = false;
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, batch.mesh.instances);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(batch.numbers), gl.DYNAMIC_DRAW);
  }

  draw(batches) {
    const { gl } = this;
    for (const batch of batches) {
      if (!batch.count) continue;
      this.send(batch);
      gl.bindVertexArray(batch.mesh.array);
      gl.drawArraysInstanced(gl.TRIANGLES, 0, batch.mesh.count, batch.count);
    }
    gl.bindVertexArray(null);
  }

  // `scene` has floors, solids, casters (of shadows), glass, a ghost and marks; `camera` eye, view, rays and distance; `light` and `theme`.
  render(scene, camera, light, theme) {
    const { gl, canvas } = this;
    this.paintShadows(scene.casters, light);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.disable(gl.DEPTH_TEST);
    gl.disable(gl.BLEND);
    gl.bindVertexArray(this.empty);
    this.use(this.sky, { ...camera.rays, ...theme });
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.bindTexture(gl.TEXTURE_2D, this.shadows);
    const given = { ...theme, ...light, view: camera.view, eye: camera.eye, from: camera.eye, push: 0, flatly: 0, taps: QUALITY[this.quality].taps };
    gl.bindVertexArray(this.sheet.array);
    for (const floor of scene.floors) {
      this.use(this.floor, { ...given, ...floor });
      gl.drawArrays(gl.TRIANGLES, 0, this.sheet.count);
    }
    this.use(this.solid, given);
    this.draw(scene.solids);
    this.paintGlass(scene.glass, given);
    this.paintGlass(scene.ghost, { ...given, push: scene.push });
    this.paintMarks(scene.marks, given);
  }

  paintShadows(casters, light) {
    const { gl } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.viewport(0, 0, SHADOW_SIDE, SHADOW_SIDE);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(1.5, 2);
    this.use(this.depth, { view: light.sunView, from: [0, 0, 1e6], push: 0 });
    this.draw(casters);
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  // What is translucent hides what is behind it of its own kind, so that its inside is not seen.
  paintGlass(glass, given) {
    const { gl } = this;
    if (!glass.some(batch => batch.count)) return;
    gl.colorMask(false, false, false, false);
    this.use(this.depth, given);
    this.draw(glass);
    gl.colorMask(true, true, true, true);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.use(this.solid, given);
    this.draw(glass);
    gl.disable(gl.BLEND);
  }

  // Marks shine through what is before them.
  paintMarks(marks, given) {
    const { gl } = this;
    this.use(this.solid, { ...given, flatly: 0.75 });
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.depthFunc(gl.GREATER);
    gl.blendFunc(gl.CONSTANT_ALPHA, gl.ONE_MINUS_CONSTANT_ALPHA);
    gl.blendColor(0, 0, 0, 0.35);
    this.draw(marks);
    gl.depthMask(true);
    gl.depthFunc(gl.LEQUAL);
    gl.disable(gl.BLEND);
    this.draw(marks);
  }
}
