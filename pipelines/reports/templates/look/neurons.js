// The room of neurons: the query of one piece, the keys of all, and what their products add up to (Vig 2019, 3.3).

function neuronsRoom(data) {
  const { labels } = data.units.piece;
  const { queries, keys } = data.neurons;
  const size = queries.shape[3], last = data.length - 1;
  const block = (state.layer * data.heads + state.head) * data.length;
  const from = Math.min(state.from ?? 0, last);
  const head = headOf(data, state.layer, state.head, "piece");
  const weights = head.subarray(from * data.length, (from + 1) * data.length);
  const to = Math.min(state.to ?? weights.indexOf(Math.max(...weights)), last);

  const vector = (bytes, given, piece) => {
    const scale = given.scale[state.layer][state.head] / 127;
    const begin = (block + piece) * size;
    return Float32Array.from(bytes.subarray(begin, begin + size), (byte) => byte * scale);
  };
  const query = vector(data.queries, queries, from);
  const offers = labels.map((_, piece) => vector(data.keys, keys, piece));
  const products = offers.map((key) => key.map((number, at) => number * query[at]));
  const dot = (piece) => products[piece].reduce((sum, number) => sum + number, 0);

  const counted = (count) => Array.from({ length: count }, (_, one) => one + 1);
  const controls = el("div", { class: "controls" },
    menu(t("Layer"), counted(data.layers), state.layer, (layer) => change({ layer })),
    menu(t("Head"), counted(data.heads), state.head, (head) => change({ head })),
    menu(t("From"), labels, from, (piece) => change({ from: piece })),
    menu(t("To"), labels, to, (piece) => change({ to: piece })));
  const name = (piece) => el("b", { lang: "ko", text: labels[piece] });
  const pair = el("figure", { class: "wide neurons" },
    el("figcaption", {}, name(from), " → ", name(to)),
    spectrum(t("query"), query), spectrum(t("key"), offers[to]), spectrum(t("product"), products[to]),
    el("p", { class: "sum" }, t("The products sum to {sum}; divided by √{size}, {score}. Softmax over all pieces:",
      { sum: decimal(dot(to)), size, score: decimal(dot(to) / Math.sqrt(size)) }), " ", el("b", { text: percent(weights[to]) })));

  const most = (vectors) => Math.max(...vectors.map((one) => Math.max(...one.map(Math.abs))), 1e-9);
  const [largestKey, largestProduct] = [most(offers), most(products)];
  const width = innerWidth < 640 ? 82 : 200;
  const table = el("div", { class: "all-keys" });
  const heads = ["", t("key"), t("query × key"), t("score"), t("weight")];
  table.append(...heads.map((head) => el("span", { class: "head", text: head })));
  for (let piece = 0; piece < data.length; piece++) {
    const byte = data.bytes[(block + from) * data.length + piece];
    if (byte === 0) continue; // behind the window of a local layer, or next to nothing
    table.append(
      el("button", { type: "button", class: `unit-name${data.special[piece] ? " special" : ""}`, lang: "ko",
        text: labels[piece], "aria-pressed": String(piece === to), "data-key": `to ${piece}`,
        onclick: () => change({ to: piece }) }),
      strip(offers[piece], width, largestKey),
      strip(products[piece], width, largestProduct),
      el("span", { class: "value", text: decimal(dot(piece) / Math.sqrt(size)) }),
      el("span", { class: "weight" }, el("span", { class: "value", text: percent(weights[piece]) }),
        el("i", { "--share": `${100 * weights[piece]}%` })));
  }
  arrows(table, "button", () => {});
  const about = t("The score of a pair is the sum, over dimensions, of the query of the attending piece times the key of the other one.");
  const title = el("h2", { class: "next", text: t("The same query against all pieces") });
  return el("div", {}, el("p", { class: "note", text: about }), controls, pair, title, table);
}

/** Bars of a vector, above and below a middle. */
function spectrum(name, numbers) {
  const most = Math.max(...numbers.map(Math.abs), 1e-9);
  const height = 46, width = Math.min(620, Math.max(220, document.querySelector("main").clientWidth - 116));
  const step = width / numbers.length;
  const drawn = canvas(width, height, (context) => {
    context.fillStyle = css(palette.rule);
    context.fillRect(0, height / 2, width, 1);
    numbers.forEach((number, at) => {
      const long = (number / most) * (height / 2 - 1);
      context.fillStyle = css(palette[number < 0 ? "c2" : "c1"]);
      context.fillRect(at * step, height / 2 - Math.max(0, long), Math.max(1, step - 1), Math.abs(long));
    });
  }, { role: "img", "aria-label": `${name}: ${numbers.length}` });
  return el("div", { class: "spectrum" }, el("span", { class: "head", text: name }), drawn);
}

/** A vector as cells of colour. */
function strip(numbers, width, most, height = 14) {
  const step = width / numbers.length;
  return canvas(width, height, (context) => numbers.forEach((number, at) => {
    context.fillStyle = twoSided(number / most);
    context.fillRect(Math.round(at * step), 0, Math.ceil(step), height);
  }), { "aria-hidden": "true" });
}
