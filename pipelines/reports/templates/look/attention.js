// The room of attention: all heads small, one large; from one piece to all heads, rollout, and what speaks for a label.

const WAYS = [["all", t("All")], ["ab", t("A to B")], ["ba", t("B to A")], ["within", t("Within each")]];
const UNITS = [["piece", t("Pieces")], ["morpheme", t("Morphemes")], ["eojeol", t("Eojeols")]];
const ROW = 26; // pixels of a unit in the lines

function attentionRoom(data) {
  const side = el("div", { class: "overview" },
    el("h2", { text: t("All heads") }),
    thumbnails(data),
    el("p", { class: "note", text: t("Each row of a head shows how much one piece attends to the others; a stronger colour is a larger weight. Attention weights do not explain the output of the model.") }));
  const controls = el("div", { class: "controls" },
    choice(t("Units"), UNITS, state.unit, (unit) => change({ unit })),
    choice(t("Drawing"), [["lines", t("Lines")], ["matrix", t("Matrix")]], state.view, (view) => change({ view })));
  if (data.texts.length > 1) controls.append(choice(t("Direction"), WAYS, state.way, (way) => change({ way })));
  if (data.label?.names.length > 1) {
    controls.append(menu(t("Label"), data.label.names, chosenLabel(data), (label) => change({ label })));
  }
  return el("div", { class: "attention" }, side, el("section", { "aria-label": t("One head") },
    el("h2", { text: t("Layer {layer}, head {head}", { layer: state.layer + 1, head: state.head + 1 }) }),
    controls,
    state.view === "matrix" ? matrixOf(data) : linesOf(data),
    keyOf(data)));
}

// ---- all heads, small ---------------------------------------------------------------------------------------------

function thumbnails(data) {
  const wide = innerWidth < 960;
  const size = Math.max(18, Math.min(wide ? 76 : 64, Math.floor(Math.min(300, innerWidth - 48) / data.heads) - 4));
  const grid = el("div", { class: "thumbs", role: "group", "aria-label": t("Heads"),
    "--columns": data.heads, "--size": `${size}px` });
  grid.append(el("span"));
  for (let head = 0; head < data.heads; head++) grid.append(el("span", { class: "number", text: head + 1 }));
  for (let layer = 0; layer < data.layers; layer++) {
    grid.append(el("span", { class: "number", text: layer + 1 }));
    for (let head = 0; head < data.heads; head++) {
      const chosen = layer === state.layer && head === state.head;
      const button = el("button", { type: "button", class: "thumb", tabindex: chosen ? "0" : "-1",
        "aria-pressed": String(chosen), "aria-label": t("layer {layer}, head {head}", { layer: layer + 1, head: head + 1 }),
        "data-key": `head ${layer} ${head}`, onclick: () => change({ layer, head }) });
      button.append(thumbnail(data, layer, head, size));
      grid.append(button);
    }
  }
  arrows(grid, "button", (button) => button.click(), data.heads);
  return grid;
}

/** A head in few pixels: the greatest weight in each. */
function thumbnail(data, layer, head, size) {
  const side = Math.min(data.length, 2 * size);
  const most = new Uint8Array(side * side);
  const offset = (layer * data.heads + head) * data.length * data.length;
  for (let row = 0; row < data.length; row++) {
    const down = Math.floor((row * side) / data.length) * side;
    for (let column = 0; column < data.length; column++) {
      const at = down + Math.floor((column * side) / data.length);
      const byte = data.bytes[offset + row * data.length + column];
      if (byte > most[at]) most[at] = byte;
    }
  }
  const shades = Array.from(SHARES, (share) => mixed("track", "c1", depth(share)));
  const image = new ImageData(side, side);
  most.forEach((byte, at) => image.data.set([...shades[byte], 255], 4 * at));
  const made = el("canvas", { "aria-hidden": "true" });
  made.width = made.height = side;
  made.getContext("2d").putImageData(image, 0, 0);
  return made;
}

// ---- one head, large ----------------------------------------------------------------------------------------------

/** What the drawing is of: weights between units, which of them are shown, and the unit that is looked from. */
function chosenHead(data) {
  const { groups, labels } = data.units[state.unit];
  const segments = [], special = [];
  groups.forEach((group, place) => {
    segments[group] = data.segments[place];
    special[group] = data.special[place];
  });
  const ways = {
    all: () => true,
    ab: (row, column) => segments[row] < segments[column],
    ba: (row, column) => segments[row] > segments[column],
    within: (row, column) => segments[row] === segments[column],
  };
  return {
    labels,
    segments,
    special,
    count: labels.length,
    weights: headOf(data, state.layer, state.head, state.unit),
    allowed: data.texts.length > 1 ? ways[state.way] : ways.all,
    from: state.from !== null && state.from < groups.length ? groups[state.from] : null,
    pieceOf: (unit) => groups.indexOf(unit),
  };
}

function linesOf(data) {
  const head = chosenHead(data);
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const left = el("ol", { class: "units from", "aria-label": t("looks from"), lang: "ko" });
  const right = el("ol", { class: "units to", "aria-label": t("looks at"), lang: "ko" });
  const middle = el("div", { class: "threads" });
  const strips = el("div", { class: "strips" });
  let hovered = null; // { from } or { to }

  head.labels.forEach((label, unit) => {
    const kind = `unit-name${head.special[unit] ? " special" : ""}`;
    const first = unit > 0 && head.segments[unit] !== head.segments[unit - 1] ? "first" : null;
    const button = el("button", { type: "button", class: kind, text: label, title: label, "data-key": `from ${unit}`,
      tabindex: unit === (head.from ?? 0) ? "0" : "-1", "aria-pressed": String(unit === head.from),
      onclick: () => change({ from: unit === head.from ? null : head.pieceOf(unit) }),
      onfocus: () => hover({ from: unit }), onblur: () => hover(null),
      onmouseenter: () => hover({ from: unit }), onmouseleave: () => hover(null) });
    const name = el("span", { class: kind, text: label, title: label,
      onmouseenter: () => hover({ to: unit }), onmouseleave: () => hover(null) });
    left.append(el("li", { class: first }, button));
    right.append(el("li", { class: first }, name));
  });
  arrows(left, "button", () => {});
  left.addEventListener("keydown", (event) => {
    if (event.key === "Escape") change({ from: null });
  });

  function hover(what) {
    hovered = what;
    paint();
  }

  function paint() {
    const from = hovered ? hovered.from ?? null : head.from;
    const to = hovered?.to ?? null;
    strips.replaceChildren(...stripsOf(data, head, from, readout)); // first: they decide what is left for the lines
    const width = middle.clientWidth || 120;
    const draw = (context) => threads(context, head, width, from, to);
    middle.replaceChildren(canvas(width, head.count * ROW, draw, { "aria-hidden": "true" }));
    const weight = (row, column) =>
      row !== null && column !== null && head.allowed(row, column) ? head.weights[row * head.count + column] : 0;
    const tint = (name, share) => {
      const most = Math.min(70, Math.round(90 * share));
      name.style.background = most ? `color-mix(in srgb, var(--c1) ${most}%, transparent)` : "";
    };
    right.querySelectorAll("span").forEach((name, unit) => tint(name, weight(from, unit)));
    left.querySelectorAll("button").forEach((name, unit) => tint(name, weight(unit, to)));
    readout.replaceChildren(...sentence(head, from, to));
  }

  requestAnimationFrame(paint);
  return el("div", {}, el("div", { class: "lines" }, left, middle, right, strips), readout);
}

/** Curves between the units: all of them, or those from one, or to one. */
function threads(context, head, width, from, to) {
  const { count, weights } = head;
  const all = from === null && to === null;
  const least = Math.min(0.02, (all ? 2 : 0.5) / count);
  context.lineCap = "round";
  for (let one = 0; one < count; one++) {
    if (from !== null && one !== from) continue;
    for (let other = 0; other < count; other++) {
      if (to !== null && other !== to) continue;
      const weight = weights[one * count + other];
      if (weight < least || !head.allowed(one, other)) continue;
      const begin = (one + 0.5) * ROW, end = (other + 0.5) * ROW;
      context.strokeStyle = css(palette.c1, Math.min(1, all ? 0.06 + 0.9 * weight : 0.25 + weight));
      context.lineWidth = 0.75 + (all ? 2.5 : 5) * weight;
      context.beginPath();
      context.moveTo(2, begin);
      context.bezierCurveTo(width * 0.45, begin, width * 0.55, end, width - 2, end);
      context.stroke();
    }
  }
}

/** The drawing in words. */
function sentence(head, from, to) {
  const strong = (unit) => el("b", { lang: "ko", text: head.labels[unit] });
  if (from === null && to === null) {
    return [t("Point at a unit, or go there with Tab and the arrow keys; Enter selects it. On the right: the mean over all.")];
  }
  const pairs = head.labels.map((_, unit) => (from !== null ? [from, unit] : [unit, to]));
  const best = pairs.filter(([row, column]) => head.allowed(row, column))
    .map(([row, column]) => [from !== null ? column : row, head.weights[row * head.count + column]])
    .sort((a, b) => b[1] - a[1]).slice(0, 3);
  const list = best.flatMap(([unit, share], place) => [place ? ", " : "", strong(unit), `\u00a0${percent(share)}`]);
  return [strong(from ?? to), from !== null ? t(" attends most to ") : t(" is attended to most by "), ...list];
}

/** What rollout and label mean. */
function keyOf(data) {
  const rolled = t("Rollout: attention to the input through all layers up to this one, with half of each layer passed on unchanged (Abnar and Zuidema 2020).");
  const key = el("div", { class: "note" }, el("p", { text: rolled }));
  if (data.missing.label) key.append(el("p", { text: data.missing.label }));
  if (!data.label) return key;
  const { names, number, probabilities } = data.label, label = chosenLabel(data);
  const value = number ? decimal(probabilities[label]) : percent(probabilities[label]);
  const about = number ? t("Label: what each unit adds to the number") : t("Label: what each unit adds to the log odds of");
  const integrated = t("Blue for it, red against; by integrated gradients from a text of masks (Sundararajan et al. 2017).");
  const colours = data.label.exact ? t("Blue for it, red against; exact, as the model is linear.") : integrated;
  const name = number ? "" : el("b", { lang: "ko", text: names[label] });
  key.append(el("p", {}, about, " ", name, ` (${value}). `, colours));
  return key;
}
