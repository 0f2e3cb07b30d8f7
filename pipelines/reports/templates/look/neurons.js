// The room of neurons: the query of one piece, the keys of all, and what their products add up to (Vig 2019, 3.3).

function neuronsRoom(data) {
  const { labels } = data.units.piece;
  const size = data.neurons.queries.shape[3];
  const block = (state.layer * data.heads + state.head) * data.length;
  const from = Math.min(state.from ?? 0, data.length - 1);
  const of = (numbers, scale, piece) => Float32Array.from(
    numbers.subarray((block + piece) * size, (block + piece + 1) * size), (byte) => (byte / 127) * scale[state.layer][state.head]);
  const query = of(data.queries, data.neurons.queries.scale, from);
  const weights = headOf(data, state.layer, state.head, "piece").subarray(from * data.length, (from + 1) * data.length);
  const seen = [...weights.keys()].filter((piece) => data.bytes[(block + from) * data.length + piece] > 0);
  const best = [...weights.keys()].sort((a, b) => weights[b] - weights[a])[0];
  const to = Math.min(state.to ?? best, data.length - 1);
  const keys = labels.map((_, piece) => of(data.keys, data.neurons.keys.scale, piece));
  const product = (piece) => keys[piece].map((number, at) => number * query[at]);
  const dot = (piece) => product(piece).reduce((sum, number) => sum + number, 0);

  const controls = el("div", { class: "controls" },
    menu("Layer", counted(data.layers), state.layer, (layer) => change({ layer })),
    menu("Head", counted(data.heads), state.head, (head) => change({ head })),
    menu("From", labels, from, (piece) => change({ from: piece })),
    menu("To", labels, to, (piece) => change({ to: piece })));

  const score = dot(to) / Math.sqrt(size);
  const pair = el("figure", { class: "wide neurons" },
    el("figcaption", {}, el("b", { lang: "ko", text: labels[from] }), " looks at ", el("b", { lang: "ko", text: labels[to] })),
    spectrum("query", query), spectrum("key", keys[to]), spectrum("product", product(to)),
    el("p", { class: "sum" }, `The products sum to ${decimal(dot(to))}; divided by √${size}, ${decimal(score)}. The softmax over all pieces makes it `,
      el("b", { text: percent(weights[to]) }), "."));

  const widest = Math.max(...keys.flatMap((_, piece) => [...product(piece)].map(Math.abs)), 1e-9);
  const largest = Math.max(...keys.flatMap((key) => [...key].map(Math.abs)), 1e-9);
  const table = el("div", { class: "all-keys" });
  table.append(...["", "key", "query × key", "score", "weight"].map((name) => el("span", { class: "head", text: name })));
  const width = innerWidth < 640 ? 82 : 200;
  seen.forEach((piece) => {
    const share = weights[piece];
    table.append(
      el("button", { type: "button", class: `unit-name${data.special[piece] ? " special" : ""}`, lang: "ko", text: labels[piece],
        "aria-pressed": String(piece === to), "data-key": `to ${piece}`, onclick: () => change({ to: piece }) }),
      strip(keys[piece], width, largest), strip(product(piece), width, widest),
      el("span", { class: "value", text: decimal(dot(piece) / Math.sqrt(size)) }),
      el("span", { class: "weight" }, el("span", { class: "value", text: percent(share) }), el("i", { "--share": `${100 * share}%` })));
  });
  arrows(table, "button", () => {});
  return el("div", {}, el("p", { class: "note", text: "A weight is made of one number per dimension: what the piece that looks asks for (its query), times what the other offers (its key)." }),
    controls, pair, el("h2", { class: "next", text: "The same query on all pieces" }), table);
}

const counted = (count) => Array.from({ length: count }, (_, one) => one + 1);

/** Bars of a vector, above and below a middle. */
function spectrum(name, numbers) {
  const most = Math.max(...numbers.map(Math.abs), 1e-9);
  const height = 46, width = Math.min(620, Math.max(220, document.querySelector("main").clientWidth - 116));
  const step = width / numbers.length;
  return el("div", { class: "spectrum" }, el("span", { class: "head", text: name }), canvas(width, height, (context) => {
    context.fillStyle = css(palette.rule);
    context.fillRect(0, height / 2, width, 1);
    numbers.forEach((number, at) => {
      const long = (number / most) * (height / 2 - 1);
      context.fillStyle = css(palette[number < 0 ? "c2" : "c1"]);
      context.fillRect(at * step, height / 2 - Math.max(0, long), Math.max(1, step - 1), Math.abs(long));
    });
  }, { role: "img", "aria-label": `${name}: ${numbers.length} numbers` }));
}

/** A vector as cells of colour. */
function strip(numbers, width, most, height = 14) {
  const step = width / numbers.length;
  return canvas(width, height, (context) => numbers.forEach((number, at) => {
    context.fillStyle = twoSided(number / most);
    context.fillRect(Math.round(at * step), 0, Math.ceil(step), height);
  }), { "aria-hidden": "true" });
}
