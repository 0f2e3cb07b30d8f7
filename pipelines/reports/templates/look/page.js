// The page: its rooms, what it asks the service for, and drawing after each change.

const ROOMS = [
  ["attention", t("Attention"), attentionRoom, (data) => data.weights],
  ["neurons", t("Neurons"), neuronsRoom, (data) => data.neurons],
  ["guesses", t("Guesses"), guessesRoom, (data) => data.units && (data.guesses || service?.operations.includes("fill"))],
  ["pieces", t("Pieces"), piecesRoom, (data) => data.stretches],
  ["vectors", t("Vectors"), vectorsRoom, (data) => data.vectors],
];

let current = null; // the data, opened
let service = null; // what the service that gave the page can do; null: the page holds its data
let token = null; // that the service asks for; kept nowhere

const KINDS = {
  pretraining: t("pretraining"), detection: t("detection"), classification: t("classification"),
  "multiple-choice": t("multiple choice"), "question-answering": t("question answering"),
  "token-classification": t("token classification"), slots: t("slots"), embedding: t("embedding"),
};

/** What the service answers at an address beside the page. Throws an Error with what it says is wrong. */
async function ask(route, body) {
  const headers = {};
  if (body) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  const chosen = body && service?.model ? { ...body, model: service.model } : body;
  const response = await fetch(route, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(chosen) });
  const found = await response.json().catch(() => null);
  if (response.ok) return found;
  const said = found?.error?.message ?? t("The service answers {status}.", { status: response.status });
  throw Object.assign(new Error(said), { status: response.status });
}

// What people do: its name in the address, the kinds of models that do it, the labels of both boxes, and examples.
const JOBS = [
  { name: "label", title: t("Label a text"), kinds: ["classification", "regression"], boxes: [t("Text"), t("Second text")],
    about: t("The label of a text, with its probability and the words that speak for it."),
    examples: [["배우들 연기가 아까운 영화", ""], ["시간 가는 줄 모르고 봤다", ""]], of: "korbert-mini-nsmc" },
  { name: "entities", title: t("Find entities"), kinds: ["token-classification"], boxes: [t("Text"), ""],
    about: t("People, places, dates, or whatever else the model was trained to find."),
    examples: [["김연아는 2010년 밴쿠버 올림픽에서 금메달을 땄다.", ""]] },
  { name: "slots", title: t("Fill slots"), kinds: ["slots"], boxes: [t("Text"), ""],
    about: t("What a request says of each slot, such as the place and the time."),
    examples: [["내일 부산 가는 표 두 장 주세요", ""]] },
  { name: "answer", title: t("Answer a question"), kinds: ["question-answering"],
    boxes: [t("Question"), t("Text with the answer")], about: t("The words of a text that answer a question."),
    examples: [["한글은 언제 만들어졌나?", "세종은 1443년에 한글을 만들고 1446년에 반포하였다."]] },
  { name: "fill", title: t("Fill a gap"), kinds: ["pretraining"], boxes: [t("Text with [MASK]"), ""],
    about: t("The likeliest words for each [MASK] in a text."),
    examples: [["오늘 [MASK] 정말 좋다", ""], ["대한민국의 수도는 [MASK]이다.", ""]] },
  { name: "compare", title: t("Compare two texts"), kinds: ["embedding"], boxes: [t("Text"), t("Second text")],
    about: t("How near two texts are in meaning: the cosine of their vectors."),
    examples: [["신용 대출을 신청하고 싶어요", "신용 대출 신청은 어떻게 하나요?"]] },
  { name: "search", title: t("Search"), kinds: [], about: t("The texts of the index that are nearest to yours."), examples: [] },
  { name: "inside", title: t("Look inside"), kinds: null, boxes: [t("Text"), t("Second text, if any")],
    about: t("Attention, neurons, pieces and vectors of any model, layer by layer."),
    examples: [["나는 너를 사랑해", ""], ["아버지가 방에 들어가신다.", ""]] },
];

/** The models that do a job. kinds null: all that show what goes on inside. */
const ableTo = (job, models) => models.filter(({ kind, operations }) =>
  job.kinds ? job.kinds.includes(kind) : operations.includes("attention"));

/** What the service has: the operations of the model that is asked, and whether there is an index. */
async function learn() {
  let health = await ask("health");
  while (health.status === "loading") {
    $("about").textContent = t("The models are loading …");
    await new Promise((done) => setTimeout(done, 1000));
    health = await ask("health");
  }
  const models = health.models ?? [];
  const jobs = JOBS.filter((job) => (job.name === "search" ? health.index : ableTo(job, models).length));
  const first = state.text || !jobs.length ? JOBS.at(-1) : jobs[0]; // a link without a job shows the inside
  const job = jobs.find(({ name }) => name === (state.job || (state.query && "search"))) ?? first;
  const able = ableTo(job, models);
  const model = able.find((one) => one.name === state.model) ?? able[0];
  service = { operations: model?.operations ?? [], kind: model?.kind, job: job.name };
  if (models.length > 1) service.model = model?.name;
  const focused = focusedKey();
  $("where").textContent = "korbert";
  $("welcome").hidden = false;
  $("jobs").replaceChildren(...jobs.map(({ name, title }) => el("button", { type: "button", role: "tab", text: title,
    "data-key": `job ${name}`, "aria-selected": String(name === job.name), tabindex: name === job.name ? "0" : "-1",
    onclick: () => name === job.name || take({ job: name, text: "", pair: "", query: "", model: "" }) })));
  $("job").textContent = job.about;
  $("model").replaceChildren(...able.map(({ name }) =>
    el("option", { value: name, text: name, selected: name === model.name })));
  $("model").parentElement.hidden = able.length < 2;
  const searches = job.name === "search";
  $("search").hidden = !searches;
  $("ask").hidden = searches;
  const reads = model?.reads ?? [];
  const [one, other] = job.boxes ?? ["", ""];
  $("first").textContent = one;
  $("second").textContent = other;
  $("pair").parentElement.hidden = !other || (job.name === "label" && !reads.includes("pair"));
  $("go").textContent = job.name === "inside" ? t("Look") : job.title;
  $("table-of").hidden = !["label", "entities", "slots"].includes(job.name);
  const examples = !job.of || job.of === model?.name ? job.examples : [];
  $("examples").hidden = Boolean(state.text) || !examples.length;
  $("examples").replaceChildren(t("Or try one of these:"), " ", ...examples.map(([text, pair]) =>
    el("button", { type: "button", lang: "ko", text: pair ? `${text} / ${pair}` : text,
      onclick: () => take({ job: job.name, text, pair }) })));
  restoreFocus(focused);
}

/** Goes to a job, or asks for an example. */
function take(values) {
  Object.assign(state, { from: null, to: null, mask: null, ...values });
  if (!state.text) clear();
  writeAddress();
  look();
}

const AT_ONCE = 100; // rows of a file

/** Labels the rows of a file, and shows them as a table, which can be saved. */
async function labelFile(file) {
  clear();
  $("fault").hidden = true;
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const content = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    const column = $("column").value.trim();
    const { data } = await ask("rows", { name: file.name, content, ...(column ? { text: column } : {}) });
    for (let at = 0; at < data.length; at += AT_ONCE) {
      $("about").textContent = t("{count} of {all} rows", { count: at, all: data.length });
      const good = data.slice(at, at + AT_ONCE).filter((row) => !row.error);
      const input = good.map(({ line, id, cut, fields, ...row }) => row);
      const found = input.length ? await ask("predict", { input }) : { data: [] };
      good.forEach((row, place) => Object.assign(row, { found: found.data[place] }));
    }
    $("about").textContent = "";
    const rows = data.map(({ line, text, question, found, error }) =>
      [String(line), text ?? question ?? "", ...(found ? saidOf(found) : ["", error ?? ""])]);
    $("labelled").replaceChildren(tableOf(rows, data.map(({ fields }) => fields), file.name));
  } catch (error) {
    $("about").textContent = "";
    fail(error);
  }
}

/** Removes what was shown of a text. */
function clear() {
  current = null;
  for (const id of ["prediction", "texts", "rooms", "room", "hits", "labelled"]) $(id).replaceChildren();
  for (const id of ["about", "missing"]) $(id).textContent = "";
  $("inside").hidden = true;
}

function draw() {
  if (!current) return;
  state.layer = Math.min(state.layer, (current.layers ?? 1) - 1);
  state.head = Math.min(state.head, (current.heads ?? 1) - 1);
  const rooms = ROOMS.filter(([, , , has]) => has(current));
  const room = rooms.find(([name]) => name === state.room) ?? rooms[0];
  const focused = focusedKey();
  $("rooms").replaceChildren(...rooms.map(([name, title]) => el("button", { type: "button", role: "tab", text: title,
    id: `tab-${name}`, "data-key": `tab ${name}`, "aria-controls": "room", "aria-selected": String(name === room[0]),
    tabindex: name === room[0] ? "0" : "-1", onclick: () => change({ room: name }) })));
  $("room").setAttribute("aria-labelledby", `tab-${room[0]}`);
  if ($("inside").open) $("room").replaceChildren(room[2](current)); // a closed one has no width
  restoreFocus(focused);
}

let wanted = null;

/** The key of what has the focus; null if it has none, undefined if a drawing took it away. */
function focusedKey() {
  const at = document.activeElement;
  return at && at !== document.body ? at.dataset.key ?? null : undefined;
}

/** The element that had the focus before a drawing has it again. */
function restoreFocus(key = wanted) {
  wanted = key ?? null;
  if (wanted) document.querySelector(`[data-key="${CSS.escape(wanted)}"]`)?.focus({ preventScroll: true });
}

/** Shows data: the prediction, the text as the title, the rooms. */
async function show(data) {
  current = await opened(data);
  const long = Math.max(...data.texts.map((text) => text.length)) > 90;
  const { head, texts } = predictionOf(data);
  $("prediction").replaceChildren(...head);
  $("texts").className = long ? "long" : head.length ? "below" : "";
  $("texts").replaceChildren(...texts.map((content, place) =>
    el("span", {}, data.texts.length > 1 ? el("small", { text: "AB"[place] }) : null, ...content)));
  $("texts").querySelector("mark.answer")?.scrollIntoView({ block: "nearest" }); // of a long context
  document.title = `${shown(data.texts[0]).slice(0, 40)} – korbert`;
  const { name, architecture, kind, layers, width } = data.model;
  const counts = data.units ? ` · ${t("{count} pieces", { count: data.units.piece.labels.length })}` : "";
  const sizes = t("{layers} layers of {width}", { layers, width });
  $("about").textContent = shown(`${name} · ${KINDS[kind] ?? kind}, ${architecture}, ${sizes}${counts}`);
  $("inside").hidden = false;
  const { attention, neurons } = data.missing; // what speaks for a label is said where it would stand
  $("missing").textContent = shown([attention, neurons].filter(Boolean).join(" "));
  draw();
}

let shownFor = null; // the request whose result the page shows

/** Asks the service for what the page shows of the texts in the address. */
async function look() {
  $("text").value = state.text;
  $("pair").value = state.pair;
  $("fault").hidden = true;
  const asked = JSON.stringify([state.text, state.pair, state.model]);
  const stale = () => asked !== JSON.stringify([state.text, state.pair, state.model]);
  try {
    await learn();
    if (asked !== shownFor) $("inside").open = service.job === "inside"; // else the result is what matters
    shownFor = asked;
    $("about").textContent = state.text ? t("Looking …") : "";
    if (!state.text) return;
    const body = state.pair ? { text: state.text, pair: state.pair } : { text: state.text };
    const later = service.kind === "classification"; // the label first, what speaks for it takes long
    $("labelled").replaceChildren();
    const data = await ask("attention", later ? { ...body, attribution: false } : body);
    if (stale()) return;
    await show(data);
    if (!later) return;
    const attributed = await ask("attention", body);
    if (!stale()) await show(attributed);
  } catch (error) {
    if (stale()) return;
    $("about").textContent = "";
    fail(error);
  }
}

function fail(error) {
  $("fault").textContent = shown(error.message);
  $("fault").hidden = false;
  $("token").parentElement.hidden = error.status !== 401;
}

/** Shows what the index has for the query in the address. */
async function search() {
  const { query } = state;
  $("query").value = query;
  $("hits").replaceChildren();
  if (!query) return;
  try {
    const found = await ask("similar", { input: query, top: 10 });
    if (query === state.query) $("hits").replaceChildren(hitsOf(found.data[0].hits, query));
  } catch (error) {
    fail(error);
  }
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
  } catch { // a page from disk may not use the clipboard
    const field = el("textarea", {}, location.href);
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  $("copy").textContent = t("Copied");
  setTimeout(() => ($("copy").textContent = t("Copy link")), 1500);
}

async function start() {
  const data = JSON.parse($("data").textContent);
  const live = data === null && location.protocol.startsWith("http");
  readPalette();
  readAddress();
  arrows($("rooms"), "button", (tab) => tab.click());
  arrows($("jobs"), "button", (tab) => tab.click());
  $("inside").hidden = true;
  $("inside").addEventListener("toggle", draw);
  $("copy").addEventListener("click", copyLink);
  $("ask").hidden = $("docs").hidden = !live;
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    state.query = $("query").value.trim();
    writeAddress();
    search();
  });
  $("model").addEventListener("change", () => {
    if ($("text").value.trim()) return $("ask").requestSubmit();
    state.model = $("model").value;
    writeAddress();
    return look();
  });
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    token = $("token").value || null;
    const model = $("model").length > 1 ? $("model").value : "";
    const job = service.job ?? "";
    Object.assign(state, { text: $("text").value.trim(), pair: $("pair").value.trim(), model, job });
    Object.assign(state, { from: null, to: null, mask: null });
    writeAddress();
    look();
  });
  for (const field of [$("text"), $("pair")]) {
    field.addEventListener("keydown", (event) => { // Enter asks; a syllable that is being typed is finished first
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      $("ask").requestSubmit();
    });
  }
  for (const field of [$("file"), $("column")]) {
    field.addEventListener("change", () => $("file").files[0] && labelFile($("file").files[0]));
  }
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0] && !$("table-of").hidden) labelFile(event.dataTransfer.files[0]);
  });
  addEventListener("hashchange", () => {
    const asked = () => [state.text, state.pair, state.model, state.job].join("\n");
    const before = asked(), { query } = state;
    readAddress();
    if (live && query !== state.query) search();
    if (live && before !== asked()) look();
    else draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readPalette();
    draw();
  });
  let width = innerWidth;
  addEventListener("resize", () => { // a phone changes its height with every scroll
    if (innerWidth === width) return;
    width = innerWidth;
    draw();
  });
  if (data) await show(data);
  else if (live) await look().then(search);
  else $("about").textContent = t("This page has no data: make it with korbert look, or open it from korbert serve.");
}

start();
