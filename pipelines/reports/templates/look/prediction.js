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
    const why = missing.prediction ? missing.prediction : asks;
    return { head: why ? [el("p", { class: "note", text: why })] : [], texts };
  }
  if (prediction.why) return { head: [el("p", { class: "note", text: whyNone(prediction) })], texts };
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
    if (prediction.labels === undefined) {
      const unsure = rows.length > 1 && rows[0][1] < 2 * rows[1][1];
      return { head: [...ranked(rows[0], rows.slice(1), unsure ? t("not sure") : ""), ...whyOf(data)], texts };
    }
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
const ranked = (best, others, doubt = "") =>
  [verdict(best[0], [percent(best[1]), doubt].filter(Boolean).join(", ")),
    ...(others.length ? [barsOf([best, ...others])] : [])];

const REASONS = 4;

/** The eojeols that add most to the log-odds of the label, or take most from them, if that is known. */
function whyOf({ label, units }) {
  if (!label || !units) return [];
  const { groups, labels } = units.eojeol;
  const sums = new Map(); // of each word, however often the text has it
  groups.forEach((group, place) =>
    sums.set(labels[group], (sums.get(labels[group]) ?? 0) + (label.shares[0][place] ?? 0)));
  const found = [...sums].filter(([, sum]) => Math.abs(sum) > 0.05);
  const most = found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, REASONS);
  const side = (title, way, words) => (words.length ? [title, ...words.flatMap(([word, sum]) =>
    [" ", el("span", { class: way, lang: "ko" }, word, el("small", { text: (sum > 0 ? "+" : "") + decimal(sum) }))]), " "] : []);
  const words = [
    ...side(t("For it:"), "for", most.filter(([, sum]) => sum > 0)),
    ...side(t("Against it:"), "against", most.filter(([, sum]) => sum < 0)),
  ];
  const title = t("What each word adds to the log-odds of the label.");
  return words.length ? [el("p", { class: "why", title }, ...words)] : [];
}

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

// ---- a file ---------------------------------------------------------------------------------------------------------

/** Why nothing is predicted, in the language of the page. */
function whyNone({ why }) {
  return { "the text is empty": t("the text is empty"), "not sure enough": t("not sure enough") }[why] ?? why;
}

/** What is predicted for a row, and its probability or why there is nothing, as text. */
function saidOf(found) {
  if (found.why) return ["", whyNone(found)];
  if (found.spans) return [found.spans.map(({ label, text }) => `${label} ${text}`).join(", "), ""];
  if (found.slots) return [Object.entries(found.slots).map(([name, one]) => `${name} ${one?.value ?? one ?? "-"}`).join(", "), ""];
  if (!found.probabilities) return [String(found.prediction), ""];
  const labels = found.labels ?? [found.label];
  return [labels.join(", "), Math.max(...Object.values(found.probabilities)).toFixed(3)];
}

/**
 * Rows of line, text, label and probability as a table, and as a CSV file to save, with the columns of the file.
 * fields: of each row, its columns.
 */
function tableOf(rows, fields, name) {
  const head = [["r", t("line")], ["", t("text")], ["", t("label")], ["r", t("probability")]];
  const cells = rows.map(([line, text, label, probability]) => [el("td", { class: "r", text: line }),
    el("td", { text, lang: "ko" }), el("td", { text: label, lang: "ko" }), el("td", { class: "r", text: probability })]);
  const columns = [...new Set(fields.flatMap(Object.keys))];
  const free = (column) => (columns.includes(column) ? free(`predicted_${column}`) : column);
  const saved = rows.map(([, , ...found], place) => [...columns.map((column) => fields[place][column] ?? ""), ...found]);
  const quoted = (cell) => `"${cell.replaceAll('"', '""')}"`;
  const lines = [[...columns, free("label"), free("probability")], ...saved].map((row) => row.map(quoted).join(","));
  const address = URL.createObjectURL(new Blob(["\ufeff", lines.join("\r\n")], { type: "text/csv" })); // for Excel
  const save = el("a", { href: address, download: `${name.replace(/\.[^.]*$/, "")}-labels.csv`, text: t("Save as CSV") });
  return el("div", {}, el("p", {}, save), table("", head, cells));
}

// ---- search ----------------------------------------------------------------------------------------------------------

const SNIPPET = 200; // characters of a found text
const BEFORE = 40; // of these, at most before the first word that is marked

/**
 * Where the words of a query are in a text: [start, end, word] in order. Of a word, its longest beginning that is there
 * counts, as what ends a Korean word depends on the sentence: 사고에도 marks 사고. One letter has to begin a short word.
 */
function foundIn(text, query) {
  const places = (query.match(/[\p{L}\p{N}]+/gu) ?? []).flatMap((word) => {
    const letters = Array.from(word);
    for (let size = letters.length; size >= Math.min(2, letters.length); size--) {
      const part = letters.slice(0, size).join("");
      const pattern = letters.length > 1 ? part : `(?<![\\p{L}\\p{N}])${part}(?![\\p{L}\\p{N}]{2})`;
      const found = [...text.matchAll(new RegExp(pattern, "giu"))];
      if (found.length) return found.map((match) => [match.index, match.index + match[0].length, word]);
    }
    return [];
  });
  return places.sort((a, b) => a[0] - b[0]).filter(([start], place, all) => !place || start >= all[place - 1][1]);
}

/** The stretch of a text that has most words of a query, with these marked. */
function snippetOf(text, query) {
  const marks = foundIn(text, query);
  let best = 0, most = 0;
  for (const [from] of marks) {
    const inside = marks.filter(([start, end]) => start >= from && end <= from + SNIPPET - BEFORE);
    const words = new Set(inside.map(([, , word]) => word)).size;
    if (words > most) [best, most] = [from, words];
  }
  let last = 0;
  if (best > BEFORE) {
    const space = text.indexOf(" ", best - BEFORE) + 1;
    last = space && space <= best ? space : best;
  }
  const end = last + SNIPPET;
  const parts = last ? ["… "] : [];
  for (const [start, stop] of marks.filter((one) => one[0] >= last && one[1] <= end)) {
    parts.push(text.slice(last, start), el("mark", { class: "right", text: text.slice(start, stop) }));
    last = stop;
  }
  return [...parts, text.slice(last, end).replace(/[\uD800-\uDBFF]$/, ""), end < text.length ? " …" : ""];
}

/** The texts of the index that are most similar to the query, best first: title, snippet and scores of each. */
function hitsOf(hits, query) {
  const fact = (name, value) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }));
  const figure = (name, value, places, rank) => (value === null || value === undefined ? null
    : fact(name, decimal(value, places) + (rank ? ` (${t("rank {rank}", { rank })})` : "")));
  const list = hits.map((hit) => {
    const title = ["title", "제목", "name"].map((name) => hit.fields?.[name]).find((one) => typeof one === "string");
    return el("li", {}, el("h3", { text: title || hit.id }), el("p", {}, ...snippetOf(hit.passage, query)), el("dl", {},
      figure(t("score"), hit.score, 3),
      figure(t("vectors"), hit.score_vectors, 3, hit.rank_vectors),
      figure(t("words"), hit.score_words, 2, hit.rank_words),
      fact("id", hit.id)));
  });
  return el("ol", { class: "hits", lang: "ko" }, ...list);
}
