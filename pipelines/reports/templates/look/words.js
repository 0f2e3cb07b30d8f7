// The room of words: where one word stands, in two dimensions, and how far its vectors lie apart.

function wordsRoom(data) {
  const { word, occurrences, points, explained, distances } = data.words;
  const list = el("ol", { class: "occurrences", lang: "ko" }, ...occurrences.map(({ text, start, end }) =>
    el("li", { tabindex: "0" },
      slice(text, 0, start), el("mark", { class: "right", text: slice(text, start, end) }), slice(text, end))));
  const map = mapOf(points, shown(word));
  const dots = [...map.querySelectorAll("g")];
  dots.forEach((dot, number) => {
    const line = list.children[number];
    const light = (on) => [dot, line].forEach((one) => one.classList.toggle("on", on));
    for (const one of [dot, line]) {
      for (const event of ["mouseenter", "focus"]) one.addEventListener(event, () => light(true));
      for (const event of ["mouseleave", "blur"]) one.addEventListener(event, () => light(false));
    }
  });

  const kept = explained.reduce((sum, one) => sum + one, 0);
  return el("div", {},
    el("div", { class: "words" },
      el("figure", {}, el("figcaption", {}, el("b", { lang: "ko", text: word }), " ", t("in two dimensions")), map,
        el("p", { class: "note", text: `${t("Principal components; share of the variance:")} ${percent(kept)}` })),
      el("figure", {}, el("figcaption", { text: t("Sentences") }), list)),
    el("h2", { class: "next", text: t("Distances (1 − cosine)") }),
    distances ? tableOfDistances(distances) : el("p", { class: "note", text: t("Left out: too many occurrences.") }));
}

function tableOfDistances(distances) {
  const most = Math.max(...distances.flat(), 1e-9);
  const head = [["", ""], ...distances.map((_, number) => ["r", number + 1])];
  const rows = distances.map((row, number) => [el("th", { text: number + 1 }),
    ...row.map((one, other) => (number === other ? el("td") : shaded(one, most, 3)))]);
  return table("shaded", head, rows);
}

/** Numbered dots; both axes have one scale, so that distances compare. */
function mapOf(points, label) {
  const width = Math.min(560, document.querySelector("main").clientWidth - 34), height = Math.round(0.64 * width);
  const end = (least) => [0, 1].map((axis) => least(...points.map((point) => point[axis])));
  const [low, high] = [end(Math.min), end(Math.max)];
  const zoom = Math.min((width - 56) / (high[0] - low[0] || 1), (height - 56) / (high[1] - low[1] || 1));
  const map = svgEl("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  points.forEach(([x, y], number) => {
    const left = width / 2 + zoom * (x - (low[0] + high[0]) / 2);
    const top = height / 2 - zoom * (y - (low[1] + high[1]) / 2);
    const name = svgEl("text", { "text-anchor": "middle", dy: "0.35em" });
    name.textContent = number + 1;
    map.append(svgEl("g", { transform: `translate(${left} ${top})` }, svgEl("circle", { r: 11 }), name));
  });
  return map;
}

function svgEl(name, given, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
