// Shaders. Colours go in and out as sRGB; light is added up in linear light.

const COMMON = `#version 300 es
precision highp float;
precision highp sampler2DShadow;
`;

const PLACED = `${COMMON}
layout(location = 0) in vec3 point;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec4 row0;
layout(location = 3) in vec4 row1;
layout(location = 4) in vec4 row2;
layout(location = 5) in vec4 color;
uniform mat4 view;
uniform vec3 from;
uniform float push;
invariant gl_Position;
out vec3 where;
out vec3 facing;
out vec4 tint;
void main() {
  mat3 m = transpose(mat3(row0.xyz, row1.xyz, row2.xyz));
  where = m * point + vec3(row0.w, row1.w, row2.w);
  // columns are axes times sizes: normals go by axes over sizes
  facing = m[0] * normal.x / dot(m[0], m[0]) + m[1] * normal.y / dot(m[1], m[1]) + m[2] * normal.z / dot(m[2], m[2]);
  tint = color;
  gl_Position = view * vec4(where, 1.0);
  // seen where it is, but as deep as if it were pushed away from the eye: what is close by stays before it
  if (push > 0.0) {
    vec4 behind = view * vec4(where + push * normalize(where - from), 1.0);
    gl_Position.z = behind.z / behind.w * gl_Position.w;
  }
}`;

const LIT = `
uniform sampler2DShadow shadows;
uniform mat4 sunView;
uniform vec3 sun;
uniform vec3 eye;
uniform vec3 sunlight;
uniform vec3 skylight;
uniform vec3 bounce;
uniform float texel;
uniform float taps;
vec3 linear(vec3 c) { return pow(c, vec3(2.2)); }
vec3 encoded(vec3 c) { return pow(clamp(c, 0.0, 1.0), vec3(1.0 / 2.2)); }
// How much of the sun is seen from a point: the average over a disc, which makes shadows soft.
float lit(vec3 p, vec3 n) {
  vec4 s = sunView * vec4(p + n * texel * 3.0, 1.0);
  vec3 c = s.xyz * 0.5 + 0.5;
  if (any(greaterThan(abs(c - 0.5), vec3(0.5)))) return 1.0;
  float sum = 0.0;
  for (float k = 0.0; k < taps; k++) {
    float r = 0.8 * sqrt(k + 0.5);
    float a = k * 2.39996323;
    sum += texture(shadows, vec3(c.xy + r * vec2(cos(a), sin(a)) / float(textureSize(shadows, 0).x), c.z - 0.0006));
  }
  vec2 rim = smoothstep(vec2(0.5), vec2(0.42), abs(c.xy - 0.5));
  return mix(1.0, sum / taps, rim.x * rim.y);
}
`;

const SOLID = `${COMMON}
in vec3 where;
in vec3 facing;
in vec4 tint;
uniform float flatly;
out vec4 pixel;
${LIT}
void main() {
  vec3 n = normalize(facing);
  vec3 look = normalize(eye - where);
  if (dot(n, look) < 0.0 && !gl_FrontFacing) n = -n;
  vec3 color = linear(tint.rgb);
  float towards = max(dot(n, sun), 0.0);
  float shade = towards > 0.0 ? lit(where, n) : 0.0;
  vec3 light = mix(bounce, skylight, 0.5 + 0.5 * n.z) + sunlight * towards * shade;
  float shine = pow(max(dot(n, normalize(look + sun)), 0.0), 40.0) * 0.16 * shade;
  float rim = pow(1.0 - max(dot(n, look), 0.0), 3.0) * 0.10;
  vec3 whole = color * light + shine * sunlight + rim * skylight;
  pixel = vec4(encoded(mix(whole, color, flatly)), 1.0) * tint.a;
}`;

const DEPTH = `${COMMON}
void main() {}`;

const FLOOR_PLACED = `${COMMON}
layout(location = 0) in vec3 point;
uniform mat4 view;
uniform vec3 middle;
uniform mat3 axes;
uniform float reach;
out vec3 where;
out vec2 across;
uniform vec2 phase;
void main() {
  where = middle + axes * (point * reach);
  across = point.xy * reach + phase;
  gl_Position = view * vec4(where, 1.0);
}`;

const FLOOR = `${COMMON}
in vec3 where;
in vec2 across;
uniform mat3 axes;
uniform float square;
uniform float fade;
uniform vec3 light;
uniform vec3 dark;
uniform vec3 horizon;
out vec4 pixel;
${LIT}
// Squares, averaged over the pixel: what is between two points of a wave of +1 and -1 is the difference of its integrals,
// which are triangles.
vec2 integral(vec2 p) { return 1.0 - 2.0 * abs(fract(0.5 * p) - 0.5); }
float squares(vec2 p) {
  vec2 width = max(fwidth(p), vec2(1e-5));
  vec2 mean = (integral(p + 0.5 * width) - integral(p - 0.5 * width)) / width;
  return 0.5 + 0.5 * mean.x * mean.y;
}
void main() {
  vec3 n = axes[2];
  vec3 color = linear(mix(dark, light, squares(across / square)));
  float towards = max(dot(n, sun), 0.0);
  vec3 lamp = mix(bounce, skylight, 0.5 + 0.5 * n.z) + sunlight * towards * lit(where, n);
  float far = distance(where, eye) / fade;
  pixel = vec4(mix(encoded(color * lamp), horizon, 1.0 - exp(-far * far)), 1.0);
}`;

const SKY_PLACED = `${COMMON}
uniform vec3 right;
uniform vec3 above;
uniform vec3 ahead;
out vec3 ray;
void main() {
  vec2 p = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
  ray = ahead + right * p.x + above * p.y;
  gl_Position = vec4(p, 1.0, 1.0);
}`;

const SKY = `${COMMON}
in vec3 ray;
uniform vec3 zenith;
uniform vec3 horizon;
out vec4 pixel;
void main() {
  float up = normalize(ray).z;
  vec3 color = mix(horizon, zenith, pow(max(up, 0.0), 0.6));
  // a little noise keeps smooth skies free of bands
  float noise = fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453) - 0.5;
  pixel = vec4(color + noise / 255.0, 1.0);
}`;
