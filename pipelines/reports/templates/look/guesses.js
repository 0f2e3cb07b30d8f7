// The room of guesses: what a model that fills gaps expects at each place. A click puts a mask there.

const asked = new Map(); // place -> what the service answered; null: not yet

function guessesRoom(data) {
  const { labels } = data.units.piece;
  const known = (place) => data.guesses?.[place] ?? asked.get(keyOfPlace(data, place));
  const places = labels.map((_, place) => place).filter((place) => !data.special[place]);
  const chosen = places.includes(state.mask) ? state.mask : null;
  const text = el("div", { class: "masks", role: "group", "aria-label": "Pieces" });
  data.texts.forEach((_, segment) => {
    const line = el("p", { lang: "ko" });
    let last = null;
    places.filter((place) => data.segments[place] === segment).forEach((place) => {
      const [start] = data.units.piece.spans[place];
      if (last !== null && start > last) line.append(" ");
      last = data.units.piece.spans[place][1];
      const own = known(place)?.own;
      line.append(el("button", { type: "button", class: "piece", "aria-pressed": String(place === chosen), "data-key": `mask ${place}`,
        tabindex: place === (chosen ?? places[0]) ? "0" : "-1", title: own === undefined || own === null ? null : `expected with ${percent(own)}`,
        "--surprise": own === undefined || own === null ? "0%" : `${Math.round(Math.min(45, -5 * Math.log(Math.max(own, 1e-9))))}%`,
        text: place === chosen ? "[MASK]" : labels[place], onclick: () => mask(data, place === chosen ? null : place) }));
    });
    text.append(line);
  });
  arrows(text, "button", () => {});

  const panel = el("div", { class: "guess-panel", "aria-live": "polite" });
  if (chosen !== null) askFor(data, chosen); // a link may name it
  if (chosen === null) panel.append(el("p", { class: "note", text: "Choose a piece: it is masked, and the model guesses." }));
  else panel.append(guessesAt(labels[chosen], known(chosen)));
  const room = el("div", {}, el("p", { class: "note", text: data.guesses
    ? "Each piece was masked alone, the rest of its word left as it is. The redder, the less the model expected what stands there."
    : "A mask takes the place of the characters of a piece; the text is then cut into pieces anew." }), text, panel);
  if (data.guesses) room.append(el("h2", { class: "next", text: "All places" }), allPlaces(data, labels, places));
  return room;
}

function guessesAt(label, found) {
  if (found?.fault) return el("p", { class: "note", text: found.fault });
  if (!found) return el("p", { class: "note", text: "Asking the model …" });
  const most = Math.max(...found.best.map(([, share]) => share), 1e-9);
  const rows = el("ol", { class: "rows" });
  for (const [piece, share] of found.best) {
    rows.append(el("li", {}, el("span", { lang: "ko", class: piece === label ? "right" : null, text: piece }),
      el("b", { class: "track", "aria-hidden": "true" }, el("i", { class: piece === label ? "c3" : "c1", "--width": `${(100 * share) / most}%` })),
      el("span", { class: "value", text: percent(share) })));
  }
  const own = found.own === null || found.own === undefined ? null
    : el("p", { class: "note" }, el("b", { lang: "ko", text: label }), ` itself has ${percent(found.own)}.`);
  return el("figure", {}, el("figcaption", {}, "In the place of ", el("b", { lang: "ko", text: label })), rows, own);
}

function allPlaces(data, labels, places) {
  const body = el("tbody");
  for (const place of places) {
    const { own, best } = data.guesses[place];
    body.append(el("tr", {}, el("td", { class: "k", lang: "ko", text: labels[place] }),
      el("td", { class: "r", text: own === null ? "–" : percent(own) }),
      ...best.map(([piece, share]) => el("td", { class: `k${piece === labels[place] ? " right" : ""}`, lang: "ko" }, piece, " ", el("small", { text: percent(share) })))));
  }
  const most = Math.max(...places.map((place) => data.guesses[place].best.length), 0);
  const head = el("tr", {}, el("th", { class: "k", text: "piece" }), el("th", { class: "r", text: "expected" }),
    ...Array.from({ length: most }, (_, one) => el("th", { text: `guess ${one + 1}` })));
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: "guesses" }, el("thead", {}, head), body));
}

/** Puts a mask at a place, and asks the service where the page does not hold its guesses. */
async function mask(data, place) {
  change({ mask: place });
  if (place !== null) await askFor(data, place);
}

/** Asks for the guesses at a place that nobody has asked for yet. */
async function askFor(data, place) {
  const key = keyOfPlace(data, place);
  if (data.guesses || asked.has(key)) return;
  asked.set(key, null);
  const [start, end] = data.units.piece.spans[place];
  const text = data.texts[data.segments[place]];
  const masks = slice(text, 0, start).split("[MASK]").length - 1; // before this one
  try {
    const found = await ask("fill", { input: slice(text, 0, start) + "[MASK]" + slice(text, end), top: 5 });
    asked.set(key, { best: found.data[0].gaps[masks].map((one) => [one.piece, one.probability]) });
  } catch (error) {
    asked.set(key, { fault: error.message });
  }
  draw();
}

const keyOfPlace = (data, place) => JSON.stringify([place, data.texts, state.model]);
