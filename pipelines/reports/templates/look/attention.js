// The room of attention: all heads small, one large, and from one piece to all heads, rollout and what speaks for a label.

const WAYS = { all: "All", ab: "A to B", ba: "B to A", within: "Within each" };

function attentionRoom(data) {
  const pick = (values) => change(values);
  const room = el("div", { class: "attention" });
  const side = el("div", { class: "overview" });
  side.append(el("h2", { text: "All heads" }), thumbnails(data, (layer, head) => pick({ layer, head })),
    el("p", { class: "note", text: "A row of a head says how much one piece takes from each other one: the stronger the colour, the more. Weights show where a head looks. They are not reasons for what the model answers." }));
  const large = el("section", { class: "large", "aria-label": "One head" });
  const controls = el("div", { class: "controls" },
    choice("Units", [["piece", "Pieces"], ["morpheme", "Morphemes"], ["eojeol", "Eojeols"]], state.unit, (unit) => pick({ unit })),
    choice("Drawing", [["lines", "Lines"], ["matrix", "Matrix"]], state.view, (view) => pick({ view })));
  if (data.texts.length > 1) controls.append(choice("Direction", Object.entries(WAYS), state.way, (way) => pick({ way })));
  if (data.label?.names.length > 1) controls.append(menu("Label", data.label.names, chosenLabel(data), (label) => pick({ label })));
  large.append(el("h2", { text: `Layer ${state.layer + 1}, head ${state.head + 1}` }), controls, state.view === "matrix" ? matrixOf(data) : linesOf(data));
  room.append(side, large);
  return room;
}

// ---- all heads, small ---------------------------------------------------------------------------------------------

function thumbnails(data, choose) {
  const size = Math.max(18, Math.min(innerWidth < 960 ? 76 : 64, Math.floor(Math.min(300, innerWidth - 48) / data.heads) - 4));
  const grid = el("div", { class: "thumbs", role: "group", "aria-label": "Heads", "--columns": data.heads, "--size": size + "px" });
  grid.append(el("span"));
  for (let head = 0; head < data.heads; head++) grid.append(el("span", { class: "number", text: head + 1 }));
  for (let layer = 0; layer < data.layers; layer++) {
    grid.append(el("span", { class: "number", text: layer + 1 }));
    for (let head = 0; head < data.heads; head++) {
      const chosen = layer === state.layer && head === state.head;
      grid.append(el("button", { type: "button", class: "thumb", "aria-pressed": String(chosen), tabindex: chosen ? "0" : "-1",
        "aria-label": `layer ${layer + 1}, head ${head + 1}`, "data-key": `head ${layer} ${head}`, onclick: () => choose(layer, head) },
        thumbnail(data, layer, head, size)));
    }
  }
  arrows(grid, "button", (button) => button.click(), data.heads);
  return grid;
}

/** A head in few pixels: the greatest weight in each. */
function thumbnail(data, layer, head, size) {
  const made = el("canvas", { "aria-hidden": "true" });
  const side = Math.min(data.length, 2 * size);
  const image = new ImageData(side, side);
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
  most.forEach((byte, at) => image.data.set([...shades[byte], 255], 4 * at));
  made.width = made.height = side;
  made.getContext("2d").putImageData(image, 0, 0);
  return made;
}

// ---- one head, large ----------------------------------------------------------------------------------------------

/** What the drawing is of: weights between units, which of them are shown, and the unit that is looked from. */
function chosenHead(data) {
  const { groups, labels } = data.units[state.unit];
  const count = labels.length;
  const weights = headOf(data, state.layer, state.head, state.unit);
  const segments = [], special = [];
  groups.forEach((group, place) => { segments[group] = data.segments[place]; special[group] = data.special[place]; });
  const allowed = (row, column) => state.way === "all" || data.texts.length < 2 ||
    (state.way === "ab" ? segments[row] < segments[column]
      : state.way === "ba" ? segments[row] > segments[column] : segments[row] === segments[column]);
  const unitOf = (piece) => (piece === null || piece >= groups.length ? null : groups[piece]);
  const pieceOf = (unit) => groups.indexOf(unit);
  return { labels, count, weights, segments, special, allowed, from: unitOf(state.from), unitOf, pieceOf };
}

function linesOf(data) {
  const head = chosenHead(data);
  const figure = el("div", { class: "lines" });
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const row = 26;
  const left = el("ol", { class: "units from", "aria-label": "looks from", lang: "ko" });
  const right = el("ol", { class: "units to", "aria-label": "looks at", lang: "ko" });
  const middle = el("div", { class: "threads" });
  const strips = el("div", { class: "strips" });
  let hovered = null; // { from } or { to }

  const pin = (unit) => change({ from: head.from === unit ? null : head.pieceOf(unit) });
  head.labels.forEach((label, unit) => {
    const kind = `unit-name${head.special[unit] ? " special" : ""}${head.segments[unit] ? " second" : ""}`;
    const focusable = unit === (head.from ?? 0) ? "0" : "-1";
    const first = unit > 0 && head.segments[unit] !== head.segments[unit - 1] ? "first" : null;
    left.append(el("li", { class: first }, el("button", { type: "button", class: kind, text: label, tabindex: focusable, title: label,
      "aria-pressed": String(unit === head.from), "data-key": `from ${unit}`, onclick: () => pin(unit),
      onfocus: () => hover({ from: unit }), onblur: () => hover(null),
      onmouseenter: () => hover({ from: unit }), onmouseleave: () => hover(null) })));
    right.append(el("li", { class: first }, el("span", { class: kind, text: label, title: label,
      onmouseenter: () => hover({ to: unit }), onmouseleave: () => hover(null) })));
  });
  arrows(left, "button", () => {}, 1);
  left.addEventListener("keydown", (event) => { if (event.key === "Escape") change({ from: null }); });

  function hover(what) {
    hovered = what;
    paint();
  }

  function paint() {
    const from = hovered?.from ?? (hovered ? null : head.from);
    const to = hovered?.to ?? null;
    strips.replaceChildren(...stripsOf(data, head, row, from, readout)); // first: they decide what is left for the lines
    const width = middle.clientWidth || 120;
    middle.replaceChildren(canvas(width, head.count * row, (context) => threads(context, head, row, width, from, to), { "aria-hidden": "true" }));
    const shadeOf = (unit, share) => `color-mix(in srgb, var(--c1) ${Math.min(70, Math.round(90 * share))}%, transparent)`;
    [...right.querySelectorAll("span")].forEach((name, unit) => {
      const share = from === null || !head.allowed(from, unit) ? 0 : head.weights[from * head.count + unit];
      name.style.background = share ? shadeOf(unit, share) : "";
    });
    [...left.querySelectorAll("button")].forEach((name, unit) => {
      const share = to === null || !head.allowed(unit, to) ? 0 : head.weights[unit * head.count + to];
      name.style.background = share ? shadeOf(unit, share) : "";
    });
    readout.replaceChildren(...sentence(data, head, from, to));
  }

  figure.append(left, middle, right, strips);
  const whole = el("div", {}, el("div", { class: "columns", "aria-hidden": "true" }), figure, readout, keyOf(data));
  requestAnimationFrame(paint);
  whole.repaint = paint;
  return whole;
}

/** Curves between the units: all of them, or those from one, or to one. */
function threads(context, head, row, width, from, to) {
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
      context.strokeStyle = css(palette.c1, Math.min(1, all ? 0.06 + 0.9 * weight : 0.25 + weight));
      context.lineWidth = 0.75 + (all ? 2.5 : 5) * weight;
      const begin = (one + 0.5) * row, end = (other + 0.5) * row;
      context.beginPath();
      context.moveTo(2, begin);
      context.bezierCurveTo(width * 0.45, begin, width * 0.55, end, width - 2, end);
      context.stroke();
    }
  }
}

/** Beside each unit what it is given in all heads, by rollout, and how it speaks for a label. */
function stripsOf(data, head, row, from, readout) {
  const height = head.count * row;
  const narrow = innerWidth < 640;
  const layers = [...Array(data.layers).keys()].filter((layer) => !narrow || data.layers * data.heads <= 16 || layer === state.layer);
  const cell = Math.max(2, Math.min(9, Math.floor((narrow ? 60 : 168) / (layers.length * data.heads))));
  const width = layers.length * (data.heads * cell + 3) - 3;
  const xOf = (place, one) => place * (data.heads * cell + 3) + one * cell;
  const heat = canvas(width, height, (context) => {
    layers.forEach((layer, place) => {
      for (let one = 0; one < data.heads; one++) {
        givenBy(data, layer, one, head.count, from).forEach((share, unit) => {
          context.fillStyle = shade(share);
          context.fillRect(xOf(place, one), unit * row + 3, cell - (cell > 4 ? 1 : 0), row - 6);
        });
        if (layer === state.layer && one === state.head) {
          context.fillStyle = css(palette.ink);
          context.fillRect(xOf(place, one), 0, cell - (cell > 4 ? 1 : 0), 2);
        }
      }
    });
  }, { class: "heat", role: "img", "aria-label": "what each unit is given in all layers and heads" });
  const at = (event) => {
    const box = heat.getBoundingClientRect();
    const x = event.clientX - box.left, unit = Math.min(head.count - 1, Math.floor((event.clientY - box.top) / row));
    const place = Math.min(layers.length - 1, Math.floor(x / (data.heads * cell + 3)));
    return { layer: layers[place], one: Math.min(data.heads - 1, Math.floor((x - xOf(place, 0)) / cell)), unit };
  };
  heat.addEventListener("click", (event) => { const { layer, one } = at(event); change({ layer, head: one }); });
  heat.addEventListener("mousemove", (event) => {
    const { layer, one, unit } = at(event);
    const share = givenBy(data, layer, one, head.count, from)[unit];
    readout.replaceChildren(`Layer ${layer + 1}, head ${one + 1}: `, el("b", { lang: "ko", text: head.labels[unit] }), ` is given ${percent(share)}`);
  });
  const columns = [column("heads", narrow ? "heads" : `${layers.length} layers of ${data.heads} heads`, heat)];
  columns.push(column("rollout", "rollout", bars(rowOf(rolloutOf(data, state.layer, state.unit), head.count, from), row, narrow ? 34 : 64)));
  if (data.label) columns.push(column("label", "label", bars(sharesOf(data, chosenLabel(data)), row, narrow ? 40 : 72, true)));
  return columns;
}

const column = (kind, name, drawing) => el("div", { class: `strip ${kind}` }, el("span", { class: "head", text: name }), drawing);

/** A row of weights; without a unit to look from, the mean of all rows. */
function rowOf(weights, count, from) {
  if (from !== null) return weights.subarray(from * count, (from + 1) * count);
  const found = new Float32Array(count);
  weights.forEach((weight, at) => (found[at % count] += weight / count));
  return found;
}

const givenBy = (data, layer, one, count, from) => kept(data, `given ${layer} ${one} ${state.unit} ${from}`, () =>
  rowOf(headOf(data, layer, one, state.unit), count, from));

const chosenLabel = (data) => Math.min(state.label, data.label.names.length - 1);

/** What each unit adds for a label: the sum over its pieces. */
function sharesOf(data, label) {
  const { groups, labels } = data.units[state.unit];
  const found = new Float32Array(labels.length);
  data.label.shares[label].forEach((share, place) => (found[groups[place]] += share));
  return found;
}

/** Horizontal bars, from the left, or to both sides of a middle. */
function bars(values, row, width, both = false) {
  const most = Math.max(...values.map(Math.abs), 1e-9);
  return canvas(width, values.length * row, (context) => {
    const zero = both ? width / 2 : 0;
    context.fillStyle = css(palette.rule);
    context.fillRect(Math.max(0, zero - 0.5), 0, 1, values.length * row);
    values.forEach((value, place) => {
      const long = (value / most) * (both ? width / 2 : width - 2);
      context.fillStyle = css(palette[value < 0 ? "c2" : both ? "c1" : "c3"], 0.85);
      context.fillRect(Math.min(zero, zero + long), place * row + 7, Math.abs(long), row - 14);
    });
  }, { "aria-hidden": "true" });
}

/** The drawing in words. */
function sentence(data, head, from, to) {
  const strong = (unit) => el("b", { lang: "ko", text: head.labels[unit] });
  const one = from ?? to;
  if (one === null) return ["Point at a unit, or go there with Tab and the arrow keys; Enter keeps it. Beside: the mean over all units."];
  const shares = [...Array(head.count).keys()].filter((unit) => (from !== null ? head.allowed(one, unit) : head.allowed(unit, one)))
    .map((unit) => [unit, from !== null ? head.weights[one * head.count + unit] : head.weights[unit * head.count + one]])
    .sort((a, b) => b[1] - a[1]).slice(0, 3);
  const list = shares.flatMap(([unit, share], place) => [place ? ", " : "", strong(unit), `\u00a0${percent(share)}`]);
  return [strong(one), from !== null ? " takes most from " : " gives most to ", ...list];
}

/** What the columns beside the lines are. */
function keyOf(data) {
  const said = "Rollout: what reaches a unit of this layer through all layers below, half of each going on unchanged (Abnar and Zuidema 2020).";
  const key = el("div", { class: "note" });
  if (data.label) {
    const { names, number, probabilities } = data.label, label = chosenLabel(data);
    const value = number ? decimal(probabilities[label]) : percent(probabilities[label]);
    key.append(el("p", {}, said), el("p", {}, `Label: what each unit adds to ${number ? "the number" : "the log odds of"} `,
      number ? "" : el("b", { lang: "ko", text: names[label] }), ` (${value}): blue for it, red against, by integrated gradients `
      + "from a text of masks (Sundararajan et al. 2017)."));
  } else {
    key.append(el("p", { text: said }));
    if (data.missing.label) key.append(el("p", { text: data.missing.label }));
  }
  return key;
}

// ---- the same as a matrix -----------------------------------------------------------------------------------------

function matrixOf(data) {
  const head = chosenHead(data);
  const { count, weights, labels } = head;
  const holder = el("div", { class: "matrix-holder" });
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const say = (from, to) => {
    if (from === null) readout.replaceChildren("A row looks, a column is looked at. A click keeps the row.");
    else if (to === null) readout.replaceChildren(...sentence(data, head, from, null));
    else readout.replaceChildren(el("b", { lang: "ko", text: labels[from] }), " takes ", percent(weights[from * count + to]), " from ", el("b", { lang: "ko", text: labels[to] }));
  };

  function paint() {
    const room = holder.clientWidth || 320;
    const named = count <= 64;
    const measure = document.createElement("canvas").getContext("2d");
    measure.font = `14px ${getComputedStyle(document.body).fontFamily}`;
    const longest = Math.max(...labels.map((label) => measure.measureText(shown(label)).width));
    const names = named ? Math.round(Math.min(longest + 8, 120, room * 0.26)) : 0;
    const cell = Math.max(named ? 7 : 1, Math.min(28, Math.floor((room - names) / count))); // whole, or lines would show
    const size = Math.min(14, 0.8 * cell);
    const side = names + count * cell;
    const drawn = canvas(side, side, (context) => {
      context.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
      context.textBaseline = "middle";
      for (let one = 0; one < count; one++) {
        if (named) {
          const middle = names + (one + 0.5) * cell;
          context.fillStyle = css(one === head.from ? palette.ink : palette.muted);
          context.textAlign = "right";
          context.fillText(fitted(context, labels[one], names - 6), names - 6, middle);
          context.save();
          context.translate(middle, names - 6);
          context.rotate(-Math.PI / 2);
          context.textAlign = "left";
          context.fillText(fitted(context, labels[one], names - 6), 0, 0);
          context.restore();
        }
        for (let other = 0; other < count; other++) {
          context.fillStyle = head.allowed(one, other) ? shade(weights[one * count + other]) : css(palette.paper);
          context.fillRect(names + other * cell, names + one * cell, cell - (cell > 6 ? 1 : 0), cell - (cell > 6 ? 1 : 0));
        }
      }
      if (head.from !== null) {
        context.strokeStyle = css(palette.ink);
        context.strokeRect(names - 0.5, names + head.from * cell - 0.5, count * cell, cell);
      }
    }, { tabindex: "0", role: "img", "data-key": "matrix", "aria-label": "weights as a matrix; arrow keys move the row" });
    const at = (event) => {
      const box = drawn.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top].map((way) => Math.floor(((way * side) / box.width - names) / cell));
      return x >= 0 && y >= 0 && x < count && y < count ? [y, x] : null;
    };
    drawn.addEventListener("mousemove", (event) => { const place = at(event); say(place ? place[0] : head.from, place ? place[1] : null); });
    drawn.addEventListener("mouseleave", () => say(head.from, null));
    drawn.addEventListener("click", (event) => { const place = at(event); if (place) change({ from: head.from === place[0] ? null : head.pieceOf(place[0]) }); });
    drawn.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (event.key === "Escape") change({ from: null });
      if (!step) return;
      event.preventDefault();
      change({ from: head.pieceOf(Math.max(0, Math.min(count - 1, (head.from ?? (step > 0 ? -1 : count)) + step))) });
    });
    holder.replaceChildren(drawn);
  }

  const whole = el("div", {}, holder, readout, keyOf(data));
  requestAnimationFrame(() => { paint(); restoreFocus(); });
  say(head.from, null);
  whole.repaint = paint;
  return whole;
}

/** The text as far as there is room. */
function fitted(context, text, room) {
  const chars = Array.from(shown(text));
  if (context.measureText(chars.join("")).width <= room) return chars.join("");
  while (chars.length && context.measureText(chars.join("") + "…").width > room) chars.pop();
  return chars.join("") + "…";
}
