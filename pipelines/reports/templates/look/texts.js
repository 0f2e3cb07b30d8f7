// The rooms of pieces, vectors, words, similar sentences and reading.

function piecesRoom(data) {
  const room = el("div", {}, el("p", { class: "note", text: "The text, coloured by piece, with the pieces and their tags below. Several pieces below the same characters are fused morphemes." }));
  data.stretches.forEach((stretches) => {
    const text = el("div", { class: "pieces", lang: "ko" });
    let number = 0;
    for (const [characters, pieces] of stretches) {
      if (!pieces.length) text.append(el("span", { class: "gap", text: characters }));
      else text.append(el("span", { class: `unit u${(number++ % 4) + 1}` }, el("b", { text: characters || "∅" }),
        ...pieces.map(([piece, tag]) => el("small", {}, piece, " ", el("i", { text: tag })))));
    }
    room.append(text);
  });
  const rows = data.units ? data.units.piece.labels.map((label, place) => {
    if (data.special[place]) return null;
    const [start, end] = data.units.piece.spans[place];
    const of = (unit) => data.units[unit].labels[data.units[unit].groups[place]];
    return el("tr", {}, ...[label, data.tags[place], `${start}:${end}`, of("morpheme"), of("eojeol")].map((cell, at) =>
      el("td", { class: "kllkk"[at], lang: "kllkk"[at] === "k" ? "ko" : null, text: cell })));
  }) : [];
  const head = ["piece", "tag", "span", "morpheme", "eojeol"].map((name) => el("th", { text: name }));
  room.append(el("details", {}, el("summary", { text: "As a table" }), el("div", { class: "scroll", tabindex: "0" },
    el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)))));
  return room;
}

// ---- vectors ------------------------------------------------------------------------------------------------------

const layerName = (layer) => (layer === 0 ? "embeddings" : `layer ${layer}`);

function vectorsRoom(data) {
  const [texts, layers, width] = data.vectors.vectors.shape;
  const wide = Math.max(200, document.querySelector("main").clientWidth - 120);
  const room = el("div", {}, el("p", { class: "note", text: "The mean of the vectors of all pieces, in every layer: a stripe per dimension, blue above 0, red below; each layer on its own scale." }));
  for (let text = 0; text < texts; text++) {
    const figure = el("figure", { class: "wide strips-of-layers" }, el("figcaption", { lang: "ko", text: data.texts[text] }));
    for (let layer = 0; layer < layers; layer++) {
      const at = (text * layers + layer) * width;
      const numbers = Float32Array.from(data.strips.subarray(at, at + width), (byte) => byte / 127);
      const spread = Math.sqrt(numbers.reduce((sum, number) => sum + number * number, 0) / width) || 1;
      figure.append(el("div", { class: "spectrum" }, el("span", { class: "head", text: layerName(layer) }), strip(numbers, wide, 2.5 * spread, 16)));
    }
    room.append(figure);
  }
  const more = el("div", { class: layers <= 8 ? "elements thirds" : "elements" });
  if (data.vectors.between_texts) {
    const rows = el("ul", { class: "rows" });
    data.vectors.between_texts.forEach((cosine, layer) => rows.append(el("li", {}, el("span", { text: layerName(layer) }),
      el("b", { class: "track", "aria-hidden": "true" }, el("i", { class: "c1", "--width": `${Math.max(0, 100 * cosine)}%` })),
      el("span", { class: "value", text: decimal(cosine, 3) }))));
    more.append(el("figure", {}, el("figcaption", { text: "Cosine between both texts" }), rows,
      el("p", { class: "note", text: "Compare ranks, not values: all texts of an untuned model are near one another." })));
  }
  data.vectors.between_layers.forEach((cosines, text) => {
    const head = el("tr", {}, el("th"), ...cosines.map((_, layer) => el("th", { class: "r", text: layer })));
    const body = cosines.map((row, layer) => el("tr", {}, el("th", { text: layerName(layer) }),
      ...row.map((cosine) => el("td", { class: "r", "--share": `${Math.round(60 * Math.max(0, cosine))}%`, text: decimal(cosine) }))));
    more.append(el("figure", {}, el("figcaption", {}, "Cosine between layers", texts > 1 ? `, text ${"AB"[text]}` : ""), el("div", { class: "scroll", tabindex: "0" },
      el("table", { class: "shaded" }, el("thead", {}, head), el("tbody", {}, ...body)))));
  });
  room.append(more);
  return room;
}

// ---- words --------------------------------------------------------------------------------------------------------

/** A text with a stretch of it marked. */
function marked(text, start, end, kind = "right") {
  return [slice(text, 0, start), el("mark", { class: kind, text: slice(text, start, end) }), slice(text, end)];
}

function wordsRoom(data) {
  const { word, occurrences, points, explained, distances } = data.words;
  const width = Math.min(560, document.querySelector("main").clientWidth - 34), height = Math.round(0.64 * width), border = 28;
  const [low, high] = [Math.min, Math.max].map((end) => [0, 1].map((axis) => end(...points.map((point) => point[axis]))));
  const zoom = Math.min((width - 2 * border) / (high[0] - low[0] || 1), (height - 2 * border) / (high[1] - low[1] || 1)); // of both axes
  const x = (value) => width / 2 + zoom * (value - (low[0] + high[0]) / 2);
  const y = (value) => height / 2 - zoom * (value - (low[1] + high[1]) / 2);
  const svg = svgEl("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `occurrences of ${word}` });
  const list = el("ol", { class: "occurrences", lang: "ko" });
  const light = (number, on) => {
    svg.querySelectorAll("g")[number].classList.toggle("on", on);
    list.children[number].classList.toggle("on", on);
  };
  points.forEach(([px, py], number) => {
    const dot = svgEl("g", { transform: `translate(${x(px)} ${y(py)})` }, svgEl("circle", { r: 11 }), svgEl("text", { "text-anchor": "middle", dy: "0.35em" }));
    dot.lastChild.textContent = number + 1;
    const { text, start, end } = occurrences[number];
    const line = el("li", { tabindex: "0" }, ...marked(text, start, end));
    for (const one of [dot, line]) {
      one.addEventListener("mouseenter", () => light(number, true));
      one.addEventListener("mouseleave", () => light(number, false));
      one.addEventListener("focus", () => light(number, true));
      one.addEventListener("blur", () => light(number, false));
    }
    svg.append(dot);
    list.append(line);
  });
  const most = Math.max(...distances.flat(), 1e-9);
  const head = el("tr", {}, el("th"), ...distances.map((_, number) => el("th", { class: "r", text: number + 1 })));
  const body = distances.map((row, number) => el("tr", {}, el("th", { text: number + 1 }),
    ...row.map((one, other) => el("td", { class: "r", "--share": `${Math.round((60 * one) / most)}%`, text: number === other ? "" : decimal(one, 3) }))));
  return el("div", {}, el("div", { class: "words" },
    el("figure", {}, el("figcaption", {}, "Each ", el("b", { lang: "ko", text: word }), " in two dimensions"), svg,
      el("p", { class: "note", text: `Principal components; they keep ${percent(explained.reduce((sum, one) => sum + one, 0))} of the variance.` })),
    el("figure", {}, el("figcaption", { text: "Sentences" }), list)),
  el("h2", { class: "next", text: "Distances (1 − cosine)" }), el("div", { class: "scroll", tabindex: "0" }, el("table", { class: "shaded" }, el("thead", {}, head), el("tbody", {}, ...body))));
}

function svgEl(name, given, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// ---- similar sentences and reading --------------------------------------------------------------------------------

function similarRoom(data) {
  const list = el("ol", { class: "hits", lang: "ko" });
  for (const hit of data.similar) {
    const facts = [["score", hit.score, 3], ["vectors", hit.score_vectors, 3, hit.rank_vectors], ["words", hit.score_words, 2, hit.rank_words]];
    list.append(el("li", {}, el("p", { text: hit.text }), el("dl", {}, ...facts.filter(([, value]) => value !== null && value !== undefined).map(([name, value, places, rank]) =>
      el("div", {}, el("dt", { text: name }), el("dd", { text: decimal(value, places) + (rank ? ` (${rank})` : "") }))), el("div", {}, el("dt", { text: "id" }), el("dd", { text: hit.id })))));
  }
  return el("div", {}, el("p", { class: "note", text: "The texts of the index nearest to the text, by vectors (cosine) and by words (BM25), with the rank in each; the score joins both ranks." }), list);
}

function readingRoom(data) {
  const { question, context, answers } = data.reading;
  const found = answers.filter((one) => one.end > one.start);
  const [best] = answers;
  const passage = el("p", { class: "passage", lang: "ko" });
  const depth = Array.from(context, () => 0);
  const most = Math.max(...found.map((one) => one.score), 1e-9);
  found.forEach((one) => { for (let at = one.start; at < one.end; at++) depth[at] = Math.max(depth[at], one.score / most); });
  const bounds = [...new Set([0, depth.length, ...found.flatMap((one) => [one.start, one.end])])].sort((a, b) => a - b);
  bounds.slice(1).forEach((end, place) => {
    const start = bounds[place], text = slice(context, start, end);
    const inBest = best && best.end > best.start && start >= best.start && end <= best.end;
    passage.append(depth[start] ? el("mark", { class: inBest ? "answer" : "other", "--share": `${Math.round(8 + 34 * depth[start])}%`, text }) : shown(text));
  });
  const rows = el("ol", { class: "rows" });
  answers.forEach((one, place) => rows.append(el("li", {}, el("span", { lang: "ko", text: one.text || "no answer" }),
    el("b", { class: "track", "aria-hidden": "true" }, el("i", { class: place ? "c1" : "c3", "--width": `${100 * one.score}%` })), el("span", { class: "value", text: percent(one.score) }))));
  return el("div", { class: "reading" }, el("div", {}, el("h2", { lang: "ko", text: question }), passage), el("figure", {}, el("figcaption", { text: "Answers" }), rows));
}
