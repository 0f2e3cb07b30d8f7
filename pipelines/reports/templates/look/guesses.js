// The room of guesses: what a model that fills gaps expects at each place. A click puts a mask there.

const asked = new Map(); // place -> what the service answered; null: not yet

function guessesRoom(data) {
  const { labels } = data.units.piece;
  const places = labels.map((_, place) => place).filter((place) => !data.special[place]);
  const chosen = places.includes(state.mask) ? state.mask : null;
  if (chosen !== null) askFor(data, chosen);
  const about = data.guesses
    ? t("Each piece was masked alone, with the rest of its word unchanged. The redder a piece, the less the model expected it.")
    : t("A mask replaces the characters of a piece; the text is then tokenized again.");
  const panel = el("div", { class: "guess-panel", "aria-live": "polite" }, chosen === null
    ? el("p", { class: "note", text: t("Choose a piece to mask it and see the model's guesses.") })
    : guessesAt(labels[chosen], knownAt(data, chosen)));
  const room = el("div", {}, el("p", { class: "note", text: about }), maskable(data, places, chosen), panel);
  if (data.guesses) room.append(el("h2", { class: "next", text: t("All positions") }), allPlaces(data, labels, places));
  return room;
}

const keyOfPlace = (data, place) => JSON.stringify([place, data.texts, state.model]);
const knownAt = (data, place) => data.guesses?.[place] ?? asked.get(keyOfPlace(data, place));

/** The texts as buttons, a piece each. */
function maskable(data, places, chosen) {
  const { labels, spans } = data.units.piece;
  const group = el("div", { class: "masks", role: "group", "aria-label": t("Pieces") });
  data.texts.forEach((_, segment) => {
    const line = el("p", { lang: "ko" });
    let last = 0;
    places.filter((place) => data.segments[place] === segment).forEach((place) => {
      const [start, end] = spans[place];
      if (start > last) line.append(" ");
      last = end;
      const own = knownAt(data, place)?.own ?? null; // expected or not; null: unknown
      const surprise = own === null ? 0 : Math.min(45, -5 * Math.log(Math.max(own, 1e-9)));
      line.append(el("button", { type: "button", class: "piece", text: place === chosen ? "[MASK]" : labels[place],
        "aria-pressed": String(place === chosen), tabindex: place === (chosen ?? places[0]) ? "0" : "-1",
        title: own === null ? null : `${t("expected")}: ${percent(own)}`, "data-key": `mask ${place}`,
        "--surprise": `${Math.round(surprise)}%`, onclick: () => change({ mask: place === chosen ? null : place }) }));
    });
    group.append(line);
  });
  arrows(group, "button", () => {});
  return group;
}

function guessesAt(label, found) {
  if (found?.fault) return el("p", { class: "note", text: found.fault });
  if (!found) return el("p", { class: "note", text: t("Asking the model …") });
  const most = Math.max(...found.best.map(([, share]) => share), 1e-9);
  const rows = found.best.map(([piece, share]) => {
    const right = piece === label;
    const given = { lang: "ko", class: right ? "right" : null };
    return barRow(piece, share / most, right ? "c3" : "c1", percent(share), given);
  });
  const own = found.own ?? null;
  const name = () => el("b", { lang: "ko", text: label });
  return el("figure", {}, el("figcaption", {}, t("In place of"), " ", name()), el("ol", { class: "rows" }, ...rows),
    own === null ? null : el("p", { class: "note" }, name(), `: ${percent(own)}`));
}

function allPlaces(data, labels, places) {
  const rows = places.map((place) => {
    const { own, best } = data.guesses[place];
    const guesses = best.map(([piece, share]) =>
      el("td", { class: `k${piece === labels[place] ? " right" : ""}`, lang: "ko" },
        piece, " ", el("small", { text: percent(share) })));
    const name = el("td", { class: "k", lang: "ko", text: labels[place] });
    return [name, el("td", { class: "r", text: own === null ? "–" : percent(own) }), ...guesses];
  });
  const most = Math.max(...places.map((place) => data.guesses[place].best.length), 0);
  const guesses = Array.from({ length: most }, (_, one) => ["", t("guess {number}", { number: one + 1 })]);
  return table("guesses", [["k", t("piece")], ["r", t("expected")], ...guesses], rows);
}

/** Asks the service for the guesses at a place that the page does not hold and nobody has asked for. */
async function askFor(data, place) {
  const key = keyOfPlace(data, place);
  if (data.guesses || asked.has(key)) return;
  asked.set(key, null);
  const [start, end] = data.units.piece.spans[place];
  const text = data.texts[data.segments[place]], before = slice(text, 0, start);
  const masks = before.split("[MASK]").length - 1; // of the text, before this one
  try {
    const found = await ask("fill", { input: `${before}[MASK]${slice(text, end)}`, top: 5 });
    asked.set(key, { best: found.data[0].gaps[masks].map((one) => [one.piece, one.probability]) });
  } catch (error) {
    asked.set(key, { fault: error.message });
  }
  draw();
}
