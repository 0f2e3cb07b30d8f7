// What the model says of the text, above the rooms: a label, entities, an answer, the words of gaps, a cosine.

/** head: elements with the prediction in large type; texts: the content of each text, with what is marked in it. */
function predictionOf(data) {
  const { prediction, reading, missing } = data;
  const texts = data.texts.map((text) => [text]);
  if (reading) {
    const [best, ...others] = reading.answers.map((one) => [one.text || t("no answer"), one.score]);
    return { head: best ? ranked(best, others) : [], texts: [texts[0], [passageOf(reading)]] };
  }
  if (!prediction) {
    const reads = data.model.kind === "question-answering";
    const asks = reads && t("The model answers from a text: give one that holds the answer.");
    const why = missing.prediction ? said(missing.prediction) : asks;
    return { head: why ? [el("p", { class: "note", text: why })] : [], texts };
  }
  if (prediction.why) return { head: [el("p", { class: "note", text: said(prediction.why) })], texts };
  if (prediction.gaps) {
    const heads = prediction.gaps.map(([best, ...others]) =>
      ranked([best.piece, best.probability], others.map((one) => [one.piece, one.probability])));
    return { head: heads.flat(), texts };
  }
  if (prediction.spans) {
    if (prediction.spans.length) texts[0] = marked(data.texts[0], prediction.spans);
    return { head: prediction.spans.length ? [] : [verdict(t("Nothing found"))], texts };
  }
  if (prediction.probabilities) {
    const rows = Object.entries(prediction.probabilities).sort((a, b) => b[1] - a[1]);
    if (prediction.labels === undefined) return { head: ranked(rows[0], rows.slice(1)), texts };
    return { head: [verdict(prediction.labels.join(", ") || t("No label")), barsOf(rows)], texts };
  }
  if (prediction.slots) {
    const rows = Object.entries(prediction.slots).map(([name, found]) =>
      [el("td", { text: name }), el("td", { text: found?.value ?? found ?? "" })]);
    return { head: [table("slots", [["", t("slot")], ["", t("value")]], rows)], texts };
  }
  const number = prediction.cosine ?? prediction.prediction;
  return { head: [verdict(decimal(number), prediction.cosine === undefined ? "" : t("cosine of both texts"))], texts };
}

const verdict = (name, figure = "") =>
  el("p", { class: "verdict" }, el("b", { lang: "ko", text: name }), " ", el("span", { text: figure }));

/** The best in large type, and bars of all where there are others. best, others: [name, probability]. */
const ranked = (best, others) =>
  [verdict(best[0], percent(best[1])), ...(others.length ? [barsOf([best, ...others])] : [])];

const barsOf = (rows) => el("ol", { class: "rows" }, ...rows.slice(0, 6).map(([name, share], place) =>
  barRow(name, share, place ? "c1" : "c3", percent(share), { lang: "ko" })));

/** A text with its spans marked, each with its label and the colour of that. */
function marked(text, spans) {
  const labels = [...new Set(spans.map(({ label }) => label))].sort();
  let last = 0;
  const parts = spans.flatMap(({ start, end, label }) => {
    const before = slice(text, last, start);
    last = end;
    const mark = { class: "entity", "--u": `var(--c${(labels.indexOf(label) % 5) + 1})` };
    return [before, el("mark", mark, slice(text, start, end), el("small", { text: label }))];
  });
  return [...parts, slice(text, last)];
}

/** The context in stretches, each as deep as the likeliest answer over it. */
function passageOf({ context, answers }) {
  const found = answers.filter((one) => one.end > one.start);
  const most = Math.max(...found.map((one) => one.score), 1e-9);
  const best = answers[0] && answers[0].end > answers[0].start ? answers[0] : null;
  const size = Array.from(context).length;
  const bounds = [...new Set([0, size, ...found.flatMap((one) => [one.start, one.end])])].sort((a, b) => a - b);
  const passage = el("span", { class: "passage" });
  bounds.slice(1).forEach((end, place) => {
    const start = bounds[place], text = slice(context, start, end);
    const scores = found.filter((one) => one.start <= start && one.end >= end).map((one) => one.score);
    if (!scores.length) return passage.append(shown(text));
    const inBest = best && start >= best.start && end <= best.end;
    const share = `${Math.round(8 + (34 * Math.max(...scores)) / most)}%`;
    return passage.append(el("mark", { class: inBest ? "answer" : "other", "--share": share, text }));
  });
  return passage;
}

// ---- search ----------------------------------------------------------------------------------------------------------

/** The texts of the index that are most similar to the query, best first. */
function hitsOf(hits) {
  const fact = (name, value) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }));
  const figure = (name, value, places, rank) => (value === null || value === undefined ? null
    : fact(name, decimal(value, places) + (rank ? ` (${t(`rank ${rank}`)})` : "")));
  const list = hits.map((hit) => el("li", {}, el("p", { text: hit.text }), el("dl", {},
    figure(t("score"), hit.score, 3),
    figure(t("vectors"), hit.score_vectors, 3, hit.rank_vectors),
    figure(t("words"), hit.score_words, 2, hit.rank_words),
    fact("id", hit.id))));
  return el("ol", { class: "hits", lang: "ko" }, ...list);
}
