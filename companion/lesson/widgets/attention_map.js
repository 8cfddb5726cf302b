// An attention map. Point at a word, or go to it with Tab and the arrow keys: arcs lead to where it looks, as strong as
// the weight; a sentence says what it moves. No import and no other host: it runs in a notebook and on a static page.

const STYLE = `
.attention-map {max-width: 46rem; font: 1rem/1.3 sans-serif; color: inherit}
.attention-map .words {position: relative; display: flex; flex-wrap: wrap; gap: 3rem 0.25rem; padding: 4rem 0.3rem 0.4rem}
.attention-map svg {position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; pointer-events: none}
.attention-map button {min-width: 2.3rem; padding: 0.15rem 0.2rem; font: inherit; color: inherit; cursor: pointer;
  background: none; border: 2px solid transparent; border-radius: 0.3rem}
.attention-map button[aria-current] {border-color: #d55e00}
.attention-map button:focus-visible {outline: 2px solid currentColor; outline-offset: 2px}
.attention-map small {display: block; min-height: 1.3em; font-size: 0.75rem; white-space: nowrap}
.attention-map select {font: inherit}
.attention-map p {margin: 0.4rem 0; min-height: 3.9em}`;

function make(parent, name, text = "", space = "http://www.w3.org/1999/xhtml") {
  const part = parent.appendChild(document.createElementNS(space, name));
  part.textContent = text;
  return part;
}

function render({ model, el }) {
  const [words, weights, heads, moves] = ["words", "weights", "heads", "moves"].map((name) => model.get(name));
  let [head, query] = [0, words.length - 1];
  const root = document.createElement("div");
  root.className = "attention-map";
  make(root, "style", STYLE);

  const label = make(root, "label", "Head ");
  const menu = make(label, "select");
  heads.forEach((name) => make(menu, "option", name));
  label.hidden = heads.length === 1;

  const line = make(root, "div");
  line.className = "words";
  line.setAttribute("role", "group");
  line.setAttribute("aria-label", "Words: left and right arrow keys go from one to the next");
  const arcs = make(line, "svg", "", "http://www.w3.org/2000/svg");
  arcs.setAttribute("aria-hidden", "true");
  const buttons = words.map((word) => make(line, "button", word));
  const shares = buttons.map((button) => make(button, "small"));
  for (const part of [menu, ...buttons]) part.dataset.lmSuppressShortcuts = "true"; // JupyterLab wants the arrow keys
  const told = make(root, "p");
  told.setAttribute("role", "status");

  const name = (place) =>
    `“${words[place]}”` + (words.indexOf(words[place]) === words.lastIndexOf(words[place]) ? "" : ` no. ${place + 1}`);
  const percent = (weight) => `${Math.round(100 * weight)} %`;

  function draw() {
    arcs.replaceChildren();
    const row = weights[head][query];
    const tops = buttons.map((button) => [button.offsetLeft + button.offsetWidth / 2, button.offsetTop]);
    const [x, y] = tops[query];
    row.forEach((weight, key) => {
      const [toX, toY] = tops[key];
      if (weight < 0.02 || key === query) return;
      const peak = Math.min(y, toY) - Math.min(90, 20 + 0.25 * Math.abs(x - toX));
      const arc = make(arcs, "path", "", arcs.namespaceURI);
      const look = { d: `M${x} ${y}Q${(x + toX) / 2} ${peak} ${toX} ${toY}`, fill: "none", stroke: "#3391d4" };
      Object.assign(look, { "stroke-width": 1 + 5 * weight, opacity: 0.4 + 0.6 * weight });
      Object.entries(look).forEach(([key, value]) => arc.setAttribute(key, value));
    });
  }

  function show(place) {
    query = place;
    const row = weights[head][query];
    buttons.forEach((button, key) => {
      button.tabIndex = key === query ? 0 : -1;
      button.toggleAttribute("aria-current", key === query);
      button.style.backgroundColor = `rgba(0, 114, 178, ${0.5 * row[key]})`;
      shares[key].textContent = row[key] >= 0.05 ? Math.round(100 * row[key]) : ""; // of 100: a sign would move words
    });
    const most = row.map((weight, key) => key).sort((one, other) => row[other] - row[one]);
    const seen = most.slice(0, 3).filter((key) => row[key] >= 0.05).map((key) => `${name(key)} (${percent(row[key])})`);
    const looks = seen.length ? `looks at ${seen.join(", ")}` : "spreads its weight thinly";
    const carried = moves.length ? `; from ${name(most[0])} it moves ${moves[head][most[0]]}` : "";
    told.textContent = `At ${name(query)}, ${heads[head]} ${looks}${carried}.`;
    draw();
  }

  buttons.forEach((button, place) => {
    button.type = "button";
    for (const event of ["pointerenter", "focus", "click"]) button.addEventListener(event, () => show(place));
  });
  line.addEventListener("keydown", (event) => {
    const goes = { ArrowLeft: query - 1, ArrowRight: query + 1, Home: 0, End: words.length - 1 };
    if (!buttons[goes[event.key]]) return;
    event.preventDefault();
    buttons[goes[event.key]].focus();
  });
  menu.addEventListener("change", () => {
    head = menu.selectedIndex;
    show(query);
  });
  el.replaceChildren(root);
  show(query);
  const observer = new ResizeObserver(draw); // also when the map comes into the page, which gives words their places
  observer.observe(line);
  return () => observer.disconnect();
}

export default { render };
