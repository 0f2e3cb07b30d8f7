// The rooms of pieces and vectors.

/** A table that scrolls by itself. head: [class, name]; rows: lists of cells. */
function table(kind, head, rows) {
  const names = head.map(([side, name]) => el("th", { class: side, text: name }));
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: kind },
    el("thead", {}, el("tr", {}, ...names)),
    el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells)))));
}

/** A name, a bar and a figure, as rows of bars have them. share: of the width. */
function barRow(name, share, colour, value, given = {}) {
  return el("li", {},
    el("span", { ...given, text: name }),
    el("b", { class: "track", "aria-hidden": "true" },
      el("i", { class: colour, "--width": `${100 * Math.max(0, share)}%` })),
    el("span", { class: "value", text: value }));
}

function piecesRoom(data) {
  const about = t("The text, coloured by piece, with the pieces and their tags below. Several pieces below the same characters are fused morphemes.");
  const room = el("div", {}, el("p", { class: "note", text: about }));
  for (const stretches of data.stretches) {
    const text = el("div", { class: "pieces", lang: "ko" });
    let number = 0;
    for (const [characters, pieces] of stretches) {
      if (!pieces.length) text.append(characters);
      else text.append(el("span", { class: `unit u${(number++ % 4) + 1}` }, el("b", { text: characters || "∅" }),
        ...pieces.map(([piece, tag]) => el("small", {}, piece, " ", el("i", { text: tag })))));
    }
    room.append(text);
  }
  if (!data.units) return room;

  const { labels, spans } = data.units.piece;
  const of = (unit, place) => data.units[unit].labels[data.units[unit].groups[place]];
  const korean = (text) => el("td", { class: "k", lang: "ko", text });
  const rows = labels.map((_, place) => place).filter((place) => !data.special[place]).map((place) => [
    korean(labels[place]),
    el("td", { text: data.tags[place] }),
    el("td", { class: "r", text: spans[place].join(":") }),
    korean(of("morpheme", place)),
    korean(of("eojeol", place)),
  ]);
  const head = [["k", t("piece")], ["l", t("tag")], ["r", t("span")], ["k", t("morpheme")], ["k", t("eojeol")]];
  room.append(el("details", {}, el("summary", { text: t("As a table") }), table("", head, rows)));
  return room;
}

// ---- vectors ------------------------------------------------------------------------------------------------------

const layerName = (layer) => (layer === 0 ? t("embeddings") : t("layer {layer}", { layer }));

function vectorsRoom(data) {
  const [texts, layers, width] = data.vectors.vectors.shape;
  const wide = Math.max(200, document.querySelector("main").clientWidth - 120);
  const about = t("The mean of the vectors of all pieces, in every layer: a stripe per dimension, blue above 0, red below; each layer on its own scale.");
  const room = el("div", {}, el("p", { class: "note", text: about }));
  for (let text = 0; text < texts; text++) {
    const caption = el("figcaption", { lang: "ko", text: data.texts[text] });
    const figure = el("figure", { class: "wide strips-of-layers" }, caption);
    for (let layer = 0; layer < layers; layer++) {
      const at = (text * layers + layer) * width;
      const numbers = Float32Array.from(data.strips.subarray(at, at + width), (byte) => byte / 127);
      const spread = Math.sqrt(numbers.reduce((sum, number) => sum + number * number, 0) / width) || 1;
      const drawn = strip(numbers, wide, 2.5 * spread, 16);
      figure.append(el("div", { class: "spectrum" }, el("span", { class: "head", text: layerName(layer) }), drawn));
    }
    room.append(figure);
  }

  const more = el("div", { class: layers <= 8 ? "elements thirds" : "elements" });
  if (data.vectors.between_texts) {
    const rows = data.vectors.between_texts.map((cosine, layer) =>
      barRow(layerName(layer), cosine, "c1", decimal(cosine, 3)));
    more.append(el("figure", {},
      el("figcaption", { text: t("Cosine between both texts") }),
      el("ul", { class: "rows" }, ...rows),
      el("p", { class: "note", text: t("Compare ranks, not values: without fine-tuning, all texts are close to each other.") })));
  }
  data.vectors.between_layers.forEach((cosines, text) => {
    const head = [["", ""], ...cosines.map((_, layer) => ["r", layer])];
    const rows = cosines.map((row, layer) =>
      [el("th", { text: layerName(layer) }), ...row.map((cosine) => shaded(cosine, 1, 2))]);
    const title = t("Cosine between layers") + (texts > 1 ? `, ${"AB"[text]}` : "");
    more.append(el("figure", {}, el("figcaption", { text: title }), table("shaded", head, rows)));
  });
  room.append(more);
  return room;
}

/** A cell with a number, as deep as it is large. */
const shaded = (number, most, places) => el("td", { class: "r", text: decimal(number, places),
  "--share": `${Math.round((60 * Math.max(0, number)) / most)}%` });
