// The page: time goes on, controls and keys are heard, everything is drawn when something changed.

const find = id => document.getElementById(id);
const THEMES = {
  light: {
    zenith: [0.62, 0.72, 0.83], horizon: [0.92, 0.93, 0.94], light: [0.86, 0.86, 0.85], dark: [0.77, 0.78, 0.79],
    sunlight: [0.72, 0.70, 0.66], skylight: [0.46, 0.48, 0.52], bounce: [0.26, 0.25, 0.24],
    ghost: [0.30, 0.62, 0.95, 0.42], ink: { text: "#5a6270", line: "#00000014", strong: "#1b2230" },
  },
  dark: {
    zenith: [0.045, 0.055, 0.075], horizon: [0.115, 0.13, 0.155], light: [0.24, 0.255, 0.28], dark: [0.19, 0.205, 0.23],
    sunlight: [0.80, 0.77, 0.72], skylight: [0.40, 0.43, 0.49], bounce: [0.20, 0.20, 0.21],
    ghost: [0.52, 0.80, 1.00, 0.42], ink: { text: "#98a2b3", line: "#ffffff14", strong: "#f2f5fa" },
  },
};
const SLOW = 0.06;
const SUN = unit([0.25, -0.9, 1.2]);

class Player {
  constructor(data, stage) {
    this.data = data;
    this.stage = stage;
    this.time = stage.motion.start;
    this.playing = false;
    this.show = { skeleton: false, contacts: false, ghost: stage.ghost ? "over" : "off", trails: [...data.view.trails] };
    this.follow = data.view.follow;
    this.canvas = find("view");
    this.renderer = new Renderer(this.canvas);
    stage.load(this.renderer);
    this.camera = new Camera(this.canvas, data.view.radius, data.view.eye, () => this.touch());
    stage.square = 10 ** Math.round(Math.log10(this.camera.distance / 4));
    this.home = this.follow >= 0 ? stage.motion.positionAt(0, this.follow) : [0, 0, 0];
    this.canvas.addEventListener("webglcontextlost", event => event.preventDefault());
    this.canvas.addEventListener("webglcontextrestored", () => {
      this.renderer = new Renderer(this.canvas, this.renderer.quality);
      stage.load(this.renderer);
      this.found = true;
      this.touch();
    });
    new ResizeObserver(() => this.touch()).observe(document.body);
    new ResizeObserver(() => this.touch()).observe(this.canvas);
  }

  // Something changed: draw at the next chance.
  touch() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(now => this.tick(now));
  }

  tick(now) {
    this.waiting = false;
    const passed = (now - (this.before ?? now)) / 1000;
    const seconds = clamp(passed, 0, 0.1);
    this.before = now;
    this.mind(passed);
    if (this.playing) this.advance(seconds);
    const moving = this.camera.advance(seconds || 1 / 60, this.anchor());
    this.draw();
    if (this.playing || moving) this.touch(); else this.before = undefined;
  }

  // Where drawing is slow, draw less finely: rather a coarse film than a slow one.
  mind(seconds) {
    if (!seconds || document.hidden) return;
    this.paces = [...(this.paces || []), seconds].slice(-5);
    const middle = [...this.paces].sort((a, b) => a - b)[2];
    if (this.paces.length < 5 || middle < SLOW || this.renderer.quality === QUALITY.length - 1) return;
    this.renderer.quality++;
    this.paces = [];
  }

  advance(seconds) {
    const { start, end } = this.stage.motion;
    this.time += seconds * this.speed;
    if (this.time < end) return;
    if (this.loop && end > start) this.leap(start + (this.time - end) % (end - start));
    else {
      this.time = end;
      this.playing = false;
      this.tell();
    }
  }

  // To another time at once: the camera goes with what it follows.
  leap(time) {
    const before = this.anchor();
    this.time = time;
    this.camera.anchor = add(this.camera.anchor, sub(this.anchor(), before));
  }

  anchor() {
    if (this.follow < 0) return [0, 0, 0];
    return sub(this.stage.motion.pose(this.time, this.follow).position, this.home);
  }

  light(camera) {
    // shadows of what is near: sharper the closer one looks
    const half = clamp(1.1 * camera.distance, 0.2 * this.stage.unit, 4 * this.stage.unit);
    const view = lookAt(add(camera.target, scale(SUN, 4 * half)), camera.target, [0, 0, 1]);
    const sunView = times(orthographic(half, 0.1 * half, 10 * half), view);
    return { sunView, sun: SUN, texel: 2 * half / SHADOW_SIDE };
  }

  draw() {
    this.renderer.fit();
    const theme = THEMES[this.theme], camera = this.camera.look();
    const scene = this.stage.scene(this.time, this.show, camera, theme);
    this.renderer.render(scene, camera, this.light(camera), theme);
    const { motion } = this.stage;
    const text = `${this.time.toFixed(2)} / ${motion.end.toFixed(2)} s`;
    if (find("time").textContent !== text) find("time").textContent = text;
    if (!this.scrubbing) find("scrub").value = this.time;
    find("scrub").setAttribute("aria-valuetext", text);
    this.charts?.draw(this.time, motion.nearest(this.time), theme.ink);
  }

  play(on = !this.playing) {
    const { start, end } = this.stage.motion;
    this.playing = on && end > start;
    if (this.playing && this.time >= end) this.leap(start);
    this.tell();
    this.touch();
  }

  seek(time) {
    this.leap(clamp(time, this.stage.motion.start, this.stage.motion.end));
    this.touch();
  }

  step(frames) {
    const { motion } = this.stage;
    this.play(false);
    this.seek(motion.times[clamp(motion.nearest(this.time) + frames, 0, motion.times.length - 1)]);
  }

  // Controls show what is so.
  tell() {
    const play = find("play");
    play.dataset.playing = this.playing;
    play.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    for (const [id, on] of [["loop", this.loop], ["contacts", this.show.contacts], ["skeleton", this.show.skeleton],
      ["plots", !find("charts").hidden]])
      find(id).setAttribute("aria-pressed", Boolean(on));
    find("ghost").value = this.show.ghost;
    find("follow").value = this.follow;
    for (const box of find("trail-list").querySelectorAll("input"))
      box.checked = this.show.trails.includes(Number(box.value));
  }

  setTheme(name) {
    this.theme = name;
    document.documentElement.dataset.theme = name;
    this.touch();
  }

  flip(what) {
    this.show[what] = !this.show[what];
    this.tell();
    this.touch();
  }

  setFollow(link) {
    // the view stays where it is: what was followed and what is followed now differ by a shift
    this.home = link >= 0 ? sub(this.stage.motion.pose(this.time, link).position, this.camera.anchor) : [0, 0, 0];
    this.follow = link;
    this.touch();
  }
}

// Buttons, lists and keys.
function connect(player, data) {
  const { motion } = player.stage;
  const press = (id, action) => find(id).addEventListener("click", event => {
    action();
    if (event.detail) find(id).blur(); // so that the space bar goes on to play and pause
  });
  press("play", () => player.play());
  press("back", () => player.step(-1));
  press("on", () => player.step(1));
  press("loop", () => { player.loop = !player.loop; player.tell(); });
  press("contacts", () => player.flip("contacts"));
  press("skeleton", () => player.flip("skeleton"));
  press("reset", () => player.camera.reset());
  press("theme", () => player.setTheme(player.theme === "dark" ? "light" : "dark"));
  press("info", () => find("facts").showModal());
  press("plots", () => { find("charts").hidden = !find("charts").hidden; player.tell(); player.touch(); });
  const scrub = find("scrub");
  Object.assign(scrub, { min: motion.start, max: motion.end, value: motion.start });
  scrub.disabled = motion.end <= motion.start;
  scrub.addEventListener("pointerdown", () => { player.scrubbing = true; });
  scrub.addEventListener("change", () => { player.scrubbing = false; player.seek(Number(scrub.value)); });
  scrub.addEventListener("input", () => player.seek(Number(scrub.value)));
  const hear = (id, action) => find(id).addEventListener("change", () => { action(find(id).value); find(id).blur(); });
  hear("speed", value => { player.speed = Number(value); });
  hear("ghost", value => { player.show.ghost = value; player.touch(); });
  hear("follow", value => player.setFollow(Number(value)));
  const option = (link, name) => Object.assign(document.createElement("option"), { value: link, textContent: name });
  find("follow").append(option(-1, "nobody"), ...data.links.map((name, link) => option(link, name)));
  find("trail-list").append(...data.links.map((name, link) => {
    const label = document.createElement("label"), box = document.createElement("input");
    Object.assign(box, { type: "checkbox", value: link });
    box.addEventListener("change", () => {
      player.show.trails = box.checked ? [...player.show.trails, link] : player.show.trails.filter(k => k !== link);
      player.touch();
    });
    label.append(box, name);
    return label;
  }));
  find("ghost-part").hidden = !player.stage.ghost;
  find("contacts").hidden = !player.stage.contacts;
  for (const id of ["follow-part", "trail-part"]) find(id).hidden = !data.links.length;
  find("skeleton").hidden = !data.parent.some(link => link >= 0);
  document.addEventListener("keydown", event => key(event, player));
  document.addEventListener("pointerdown", event => {
    if (!find("trail-part").contains(event.target)) find("trail-part").open = false;
  });
}

function key(event, player) {
  const at = event.target.tagName;
  if (event.ctrlKey || event.metaKey || event.altKey || at === "SELECT" || find("facts").open) return;
  if (event.key === " " && ["BUTTON", "SUMMARY", "INPUT"].includes(at) && event.target.id !== "scrub") return;
  const turn = 0.12, cycle = { over: "beside", beside: "off", off: "over" };
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  const actions = {
    " ": () => player.play(),
    Home: () => player.seek(player.stage.motion.start),
    End: () => player.seek(player.stage.motion.end),
    "+": () => player.camera.zoom(0.85),
    "-": () => player.camera.zoom(1 / 0.85),
    c: () => player.stage.contacts && player.flip("contacts"),
    s: () => find("skeleton").hidden || player.flip("skeleton"),
    g: () => { if (player.stage.ghost) player.show.ghost = cycle[player.show.ghost]; player.tell(); player.touch(); },
    l: () => find("loop").click(),
    p: () => find("plots").hidden || find("plots").click(),
    r: () => player.camera.reset(),
    "?": () => find("info").click(),
  };
  if (arrows && event.shiftKey) player.camera.orbit(-turn * arrows[0], turn * arrows[1]);
  else if (arrows && arrows[0]) player.step(arrows[0]);
  else if (!arrows && actions[event.key]) actions[event.key]();
  else return;
  event.preventDefault();
}

function tellFacts(data) {
  find("title").textContent = data.title;
  find("what").textContent = data.about;
  find("facts-title").textContent = data.title;
  find("facts-about").textContent = data.about;
  find("facts-list").append(...data.facts.flatMap(([name, value]) => [
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: value }),
  ]));
}

async function begin() {
  const data = JSON.parse(find("data").textContent);
  const wish = query => window.matchMedia(query).matches;
  const theme = wish("(prefers-color-scheme: dark)") ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
  tellFacts(data);
  try {
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old (no DecompressionStream)");
    const stage = await Stage.read(data);
    const player = new Player(data, stage);
    player.speed = 1;
    player.loop = true;
    connect(player, data);
    player.setTheme(theme);
    find("plots").hidden = !data.charts.length || stage.motion.times.length < 2;
    find("charts").hidden = find("plots").hidden || window.innerHeight < 600;
    if (!find("plots").hidden) {
      player.charts = new Charts(data.charts, stage.motion.times, {
        canvas: find("chart"), choice: find("chart-choice"), legend: find("legend"),
        sought: time => player.seek(time), changed: () => player.touch(),
      });
      await player.charts.choose(0);
    }
    player.play(!wish("(prefers-reduced-motion: reduce)"));
    find("message").hidden = true;
    document.documentElement.dataset.state = "ready";
    window.poise = player;
  } catch (problem) {
    document.documentElement.dataset.state = "still";
    find("reason").textContent = `This browser cannot show the recording in 3-D: ${problem.message}.`;
  }
}

begin();
