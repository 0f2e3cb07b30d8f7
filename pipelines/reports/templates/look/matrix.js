// One head as a matrix: rows look, columns are looked at.

const NAMED = 64; // units up to which rows and columns have their names

function matrixOf(data) {
  const head = chosenHead(data);
  const { count, weights, labels } = head;
  const holder = el("div", { class: "matrix-holder" });
  const readout = el("p", { class: "readout", "aria-live": "polite" });

  function say(from, to) {
    const name = (unit) => el("b", { lang: "ko", text: labels[unit] });
    if (from === null) readout.replaceChildren(t("Rows attend to columns. Click to keep a row."));
    else if (to === null) readout.replaceChildren(...sentence(head, from, null));
    else readout.replaceChildren(name(from), " → ", name(to), `: ${percent(weights[from * count + to])}`);
  }

  function paint() {
    const font = getComputedStyle(document.body).fontFamily;
    const room = holder.clientWidth || 320;
    const names = count <= NAMED ? Math.round(Math.min(widest(labels, font) + 8, 120, room * 0.26)) : 0;
    const least = names ? 7 : 1;
    const cell = Math.max(least, Math.min(28, Math.floor((room - names) / count))); // whole pixels, or lines would show
    const side = names + count * cell, inner = cell - (cell > 6 ? 1 : 0);
    const drawn = canvas(side, side, (context) => {
      if (names) margins(context, head, names, cell, font);
      for (let one = 0; one < count; one++) {
        for (let other = 0; other < count; other++) {
          context.fillStyle = head.allowed(one, other) ? shade(weights[one * count + other]) : css(palette.paper);
          context.fillRect(names + other * cell, names + one * cell, inner, inner);
        }
      }
      if (head.from === null) return;
      context.strokeStyle = css(palette.ink);
      context.strokeRect(names - 0.5, names + head.from * cell - 0.5, count * cell, cell);
    }, { tabindex: "0", role: "img", "data-key": "matrix", "aria-label": t("weights; arrow keys move the row") });

    /** [row, column] under the mouse, or null. */
    const at = (event) => {
      const box = drawn.getBoundingClientRect();
      const place = [event.clientY - box.top, event.clientX - box.left]
        .map((way) => Math.floor(((way * side) / box.width - names) / cell));
      return place.every((one) => one >= 0 && one < count) ? place : null;
    };
    drawn.addEventListener("mousemove", (event) => say(...(at(event) ?? [head.from, null])));
    drawn.addEventListener("mouseleave", () => say(head.from, null));
    drawn.addEventListener("click", (event) => {
      const place = at(event);
      if (place) change({ from: head.from === place[0] ? null : head.pieceOf(place[0]) });
    });
    drawn.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (event.key === "Escape") change({ from: null });
      if (!step) return;
      event.preventDefault();
      const row = (head.from ?? (step > 0 ? -1 : count)) + step;
      change({ from: head.pieceOf(Math.max(0, Math.min(count - 1, row))) });
    });
    holder.replaceChildren(drawn);
    restoreFocus();
  }

  say(head.from, null);
  requestAnimationFrame(paint);
  return el("div", {}, holder, readout);
}

/** The names of rows and columns. */
function margins(context, head, names, cell, font) {
  context.font = `${Math.min(14, 0.8 * cell)}px ${font}`;
  context.textBaseline = "middle";
  head.labels.forEach((label, unit) => {
    const middle = names + (unit + 0.5) * cell, text = fitted(context, label, names - 6);
    context.fillStyle = css(unit === head.from ? palette.ink : palette.muted);
    context.textAlign = "right";
    context.fillText(text, names - 6, middle);
    context.save();
    context.translate(middle, names - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(text, 0, 0);
    context.restore();
  });
}

function widest(labels, font) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `14px ${font}`;
  return Math.max(...labels.map((label) => context.measureText(shown(label)).width));
}

/** The text as far as there is room. */
function fitted(context, text, room) {
  const chars = Array.from(shown(text));
  if (context.measureText(chars.join("")).width <= room) return chars.join("");
  while (chars.length && context.measureText(chars.join("") + "…").width > room) chars.pop();
  return chars.join("") + "…";
}
