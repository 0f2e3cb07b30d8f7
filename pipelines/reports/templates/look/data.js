// What the page holds: the data, the state of the view (in the address), and small means to build elements.

const $ = (id) => document.getElementById(id);

const WORDS = JSON.parse($("words")?.textContent || "{}"); // English -> the language of the page

/** A text of the page in its language, with the values of its {fields}. */
function t(text, values = {}) {
  return (WORDS[text] ?? text).replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** An element with properties (class, text, on*, attributes) and children; text is never markup. */
function el(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") made.className = value;
    else if (key === "text") made.textContent = shown(value);
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) made.style.setProperty(key, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null).map((c) => (typeof c === "string" ? shown(c) : c)));
  return made;
}

/** Text with control and invisible characters as escapes, as all pages have it. */
const shown = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) =>
  "\n\t\u200d".includes(char) ? char : "\\u" + char.codePointAt(0).toString(16).padStart(4, "0"));

/** Code points from start to end: spans count those, not UTF-16 units. */
const slice = (text, start, end) => Array.from(text).slice(start, end).join("");

/** 12 %, 1.2 %, 99.8 %, < 0.1 %. */
function percent(share) {
  if (share > 0 && share < 0.0005) return "<\u00a00.1\u00a0%";
  const places = share < 0.0995 || (share > 0.995 && share < 0.9995) ? 1 : 0;
  return `${(100 * share).toFixed(places)}\u00a0%`;
}

/** With a minus sign; none before 0.00. */
const decimal = (number, places = 2) =>
  number.toFixed(places).replace(/^-(?=.*[1-9])/, "\u2212").replace(/^-/, "");

// ---- arrays -------------------------------------------------------------------------------------------------------

/** The bytes of a packed array: base64 of zlib. */
async function unpacked(given, Kind = Uint8Array) {
  const bytes = Uint8Array.from(atob(given.data), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Kind(await new Response(stream).arrayBuffer());
}

const SHARES = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2); // weights are kept as their roots

/** Data as drawn: weights, queries, keys and vectors as arrays of numbers. */
async function opened(data) {
  const found = { ...data, cache: new Map() };
  if (data.weights) {
    found.bytes = await unpacked(data.weights);
    [found.layers, found.heads, found.length] = data.weights.shape;
  }
  if (data.neurons) {
    found.queries = await unpacked(data.neurons.queries, Int8Array);
    found.keys = await unpacked(data.neurons.keys, Int8Array);
  }
  if (data.vectors) found.strips = await unpacked(data.vectors.vectors, Int8Array);
  return found;
}

/** Computes once. */
function kept(data, key, make) {
  if (!data.cache.has(key)) data.cache.set(key, make());
  return data.cache.get(key);
}

/** Weights between pieces of one head, (T x T); rows sum to 1. */
function weightsOf(data, layer, head) {
  const size = data.length;
  const found = new Float32Array(size * size);
  const offset = (layer * data.heads + head) * size * size;
  for (let row = 0; row < size; row++) {
    let sum = 0;
    for (let at = row * size; at < (row + 1) * size; at++) sum += found[at] = SHARES[data.bytes[offset + at]];
    if (sum) for (let at = row * size; at < (row + 1) * size; at++) found[at] /= sum;
  }
  return found;
}

/** Weights between units: summed over the pieces looked at, their mean over those that look. (T x T) -> (G x G). */
function joined(data, weights, unit) {
  if (unit === "piece") return weights;
  const { groups, labels } = data.units[unit];
  const size = data.length, count = labels.length;
  const members = new Float32Array(count);
  for (const group of groups) members[group]++;
  const found = new Float32Array(count * count);
  for (let row = 0; row < size; row++) {
    const base = groups[row] * count, share = 1 / members[groups[row]];
    for (let column = 0; column < size; column++) found[base + groups[column]] += weights[row * size + column] * share;
  }
  return found;
}

const headOf = (data, layer, head, unit) =>
  kept(data, `head ${layer} ${head} ${unit}`, () => joined(data, weightsOf(data, layer, head), unit));

/** What reaches each piece of a layer from each of the text (Abnar and Zuidema 2020): heads count alike, half stays. */
function rollout(data, layer) {
  return kept(data, `rollout ${layer}`, () => {
    const size = data.length;
    const passed = new Float32Array(size * size);
    for (let head = 0; head < data.heads; head++) {
      weightsOf(data, layer, head).forEach((weight, at) => (passed[at] += (0.5 * weight) / data.heads));
    }
    for (let place = 0; place < size; place++) passed[place * size + place] += 0.5;
    if (layer === 0) return passed;
    const below = rollout(data, layer - 1);
    const found = new Float32Array(size * size);
    for (let row = 0; row < size; row++) {
      for (let middle = 0; middle < size; middle++) {
        const share = passed[row * size + middle], from = middle * size, to = row * size;
        if (share) for (let column = 0; column < size; column++) found[to + column] += share * below[from + column];
      }
    }
    return found;
  });
}

const rolloutOf = (data, layer, unit) =>
  kept(data, `rollout ${layer} ${unit}`, () => joined(data, rollout(data, layer), unit));

// ---- the state of the view, in the address ------------------------------------------------------------------------

const FIRST = {
  room: "", layer: 0, head: 0, unit: "piece", view: "lines", way: "all", from: null, to: null, mask: null, label: 0,
  text: "", pair: "", model: "", query: "", job: "",
};
const state = { ...FIRST };

const ALLOWED = {
  unit: ["piece", "morpheme", "eojeol"],
  view: ["lines", "matrix"],
  way: ["all", "ab", "ba", "within"],
};

/** Reads the address: numbers count from 1 there, as on the page. What it cannot hold is left out. */
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [key, first] of Object.entries(FIRST)) {
    const value = given.get(key);
    if (value === null || (ALLOWED[key] && !ALLOWED[key].includes(value))) state[key] = first;
    else if (typeof first === "string") state[key] = value;
    else state[key] = /^[1-9]\d{0,5}$/.test(value) ? Number(value) - 1 : first;
  }
}

/** Changes the state, the address, and what is drawn. */
function change(values) {
  Object.assign(state, values);
  writeAddress();
  draw();
}

function writeAddress() {
  const given = new URLSearchParams();
  for (const [key, first] of Object.entries(FIRST)) {
    if (state[key] !== first) given.set(key, typeof state[key] === "number" ? state[key] + 1 : state[key]);
  }
  history.replaceState(null, "", "#" + given);
}

// ---- colours and canvases -----------------------------------------------------------------------------------------

const palette = {};

/** The colours of the style sheet as [r, g, b]; they change with dark mode. */
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "muted", "rule", "track", "c1", "c2", "c3", "c4", "c5"]) {
    const hex = style.getPropertyValue("--" + name).trim().slice(1);
    palette[name] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  }
}

const mixed = (from, to, share) => palette[from].map((part, at) => Math.round(part + (palette[to][at] - part) * share));
const css = (rgb, alpha = 1) => `rgba(${rgb.join(",")},${alpha})`;

/** How deep the colour of a share of 0 to 1 is: small ones show. */
const depth = (share) => Math.min(1, share) ** 0.6;
const shade = (share) => css(mixed("track", "c1", depth(share)));
/** Shade of a number of -1 to 1: blue above 0, red below. */
const twoSided = (number) => css(mixed("track", number < 0 ? "c2" : "c1", Math.min(1, Math.abs(number))));

/** A canvas of so many CSS pixels, sharp on any screen. */
function canvas(width, height, paint, given = {}) {
  const made = el("canvas", given);
  const scale = height * (devicePixelRatio || 1) > 16000 ? 1 : Math.max(1, devicePixelRatio || 1);
  made.width = Math.max(1, Math.round(width * scale));
  made.height = Math.max(1, Math.round(height * scale));
  made.style.width = width + "px";
  made.style.height = height + "px";
  const context = made.getContext("2d");
  context.scale(scale, scale);
  paint(context);
  return made;
}

/** Buttons of which one is pressed. choices: [value, name] each. */
function choice(label, choices, chosen, choose) {
  const row = el("div", { class: "choice", role: "radiogroup", "aria-label": label });
  for (const [value, name] of choices) {
    const picked = value === chosen;
    row.append(el("button", { type: "button", role: "radio", text: name, "data-key": `${label} ${value}`,
      "aria-checked": String(picked), tabindex: picked ? "0" : "-1", onclick: () => choose(value) }));
  }
  arrows(row, "button", (button) => button.click());
  return row;
}

/** A menu of names; choose gets the place of one. */
function menu(label, names, chosen, choose) {
  const select = el("select", { "aria-label": label, "data-key": label });
  select.addEventListener("change", () => choose(Number(select.value)));
  names.forEach((name, place) => select.append(el("option", { value: place, text: name, selected: place === chosen })));
  return el("label", { class: "menu" }, el("span", { text: label }), select);
}

/** Arrow keys move the focus among the elements of a row or grid. moved: called with the one that has it then. */
function arrows(parent, selector, moved, columns = 1) {
  parent.addEventListener("keydown", (event) => {
    const all = [...parent.querySelectorAll(selector)];
    const at = all.indexOf(document.activeElement);
    const ends = { Home: -at, End: all.length - 1 - at };
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, ...ends }[event.key];
    if (at < 0 || step === undefined || !all[at + step]) return;
    event.preventDefault();
    all[at + step].focus();
    moved(all[at + step], at + step);
  });
}
