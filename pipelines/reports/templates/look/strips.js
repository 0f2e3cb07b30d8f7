// Beside the lines: what each unit is given in all heads, by rollout, and what it adds for a label.

/** The columns beside the lines, for one unit that looks; null: the mean over all. */
function stripsOf(data, head, from, readout) {
  const narrow = innerWidth < 640;
  const rolled = rowOf(rolloutOf(data, state.layer, state.unit), head.count, from);
  const columns = [heatOf(data, head, from, readout, narrow), column(t("rollout"), bars(rolled, narrow ? 34 : 64))];
  if (data.label) columns.push(column(t("label"), bars(sharesOf(data, chosenLabel(data)), narrow ? 40 : 72, true)));
  return columns;
}

const column = (name, drawing) => el("div", { class: "strip" }, el("span", { class: "head", text: name }), drawing);

/** A cell for each head; of many heads on a phone, those of the layer. */
function heatOf(data, head, from, readout, narrow) {
  const all = [...Array(data.layers).keys()];
  const layers = narrow && data.layers * data.heads > 16 ? [state.layer] : all;
  const cell = Math.max(2, Math.min(9, Math.floor((narrow ? 60 : 168) / (layers.length * data.heads))));
  const step = data.heads * cell + 3, inner = cell - (cell > 4 ? 1 : 0);
  const drawn = canvas(layers.length * step - 3, head.count * ROW, (context) => {
    layers.forEach((layer, place) => {
      for (let one = 0; one < data.heads; one++) {
        const left = place * step + one * cell;
        givenBy(data, layer, one, head.count, from).forEach((share, unit) => {
          context.fillStyle = shade(share);
          context.fillRect(left, unit * ROW + 3, inner, ROW - 6);
        });
        if (layer !== state.layer || one !== state.head) continue;
        context.fillStyle = css(palette.ink);
        context.fillRect(left, 0, inner, 2);
      }
    });
  }, { class: "heat", role: "img", "aria-label": t("attention to each unit in all layers and heads") });

  const at = (event) => {
    const box = drawn.getBoundingClientRect();
    const x = event.clientX - box.left;
    const place = Math.max(0, Math.min(layers.length - 1, Math.floor(x / step)));
    const one = Math.max(0, Math.min(data.heads - 1, Math.floor((x - place * step) / cell)));
    const unit = Math.max(0, Math.min(head.count - 1, Math.floor((event.clientY - box.top) / ROW)));
    return { layer: layers[place], one, unit };
  };
  drawn.addEventListener("click", (event) => {
    const { layer, one } = at(event);
    change({ layer, head: one });
  });
  drawn.addEventListener("mousemove", (event) => {
    const { layer, one, unit } = at(event);
    const share = givenBy(data, layer, one, head.count, from)[unit];
    const name = el("b", { lang: "ko", text: head.labels[unit] });
    readout.replaceChildren(t("Layer {layer}, head {head}", { layer: layer + 1, head: one + 1 }), " → ", name, `: ${percent(share)}`);
  });
  const short = narrow || layers.length * step < 130; // else the words reach over the next column
  return column(short ? t("heads") : t("{layers} layers of {heads} heads", { layers: layers.length, heads: data.heads }), drawn);
}

/** A row of weights; without a unit to look from, the mean of all rows. */
function rowOf(weights, count, from) {
  if (from !== null) return weights.subarray(from * count, (from + 1) * count);
  const found = new Float32Array(count);
  weights.forEach((weight, at) => (found[at % count] += weight / count));
  return found;
}

function givenBy(data, layer, one, count, from) {
  const { unit } = state;
  return kept(data, `given ${layer} ${one} ${unit} ${from}`, () => rowOf(headOf(data, layer, one, unit), count, from));
}

const chosenLabel = (data) => Math.min(state.label, data.label.names.length - 1);

/** What each unit adds for a label: the sum over its pieces. */
function sharesOf(data, label) {
  const { groups, labels } = data.units[state.unit];
  const found = new Float32Array(labels.length);
  data.label.shares[label].forEach((share, place) => (found[groups[place]] += share));
  return found;
}

/** Horizontal bars, from the left, or to both sides of a middle. */
function bars(values, width, both = false) {
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const zero = both ? width / 2 : 0;
  return canvas(width, values.length * ROW, (context) => {
    context.fillStyle = css(palette.rule);
    context.fillRect(Math.max(0, zero - 0.5), 0, 1, values.length * ROW);
    values.forEach((value, place) => {
      const long = (value / most) * (both ? width / 2 : width - 2);
      context.fillStyle = css(palette[value < 0 ? "c2" : both ? "c1" : "c3"], 0.85);
      context.fillRect(Math.min(zero, zero + long), place * ROW + 7, Math.abs(long), ROW - 14);
    });
  }, { "aria-hidden": "true" });
}
