// Predictions are kept in this browser, and come back beside what was measured; the claims can be filtered.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll(".bd-sidebar summary, nav summary")) {
    if (!arrow.textContent.trim()) arrow.setAttribute("aria-label", "Show the pages within");
  }
  const sidebar = document.querySelector(".bd-sidebar-primary"); // the theme gives it no landmark
  sidebar?.setAttribute("role", "complementary");
  sidebar?.setAttribute("aria-label", "The course");
  const key = (name) => `prediction:${location.pathname.split("/").pop()}:${name}`;
  const boxes = [...document.querySelectorAll("[data-prediction]")];
  const heads = [...document.querySelectorAll("th")].filter((head) => head.textContent === "You said");
  const sheet = () => {
    for (const head of heads) {
      for (const [question, said, , verdict] of [...head.closest("table").rows].slice(1).map((row) => row.cells)) {
        const asked = question.textContent.trim();
        const box = boxes.find((box) => box.closest("label").querySelector("span").textContent === asked);
        said.textContent = box?.value || "–";
        verdict.textContent = box?.value ? "" : "no prediction";
      }
    }
  };
  for (const box of boxes) {
    box.value = localStorage.getItem(key(box.dataset.prediction)) ?? "";
    box.addEventListener("input", () => {
      localStorage.setItem(key(box.dataset.prediction), box.value);
      sheet();
    });
  }
  sheet();
  for (const fold of document.querySelectorAll("details.measured")) {
    const said = fold.insertBefore(document.createElement("p"), fold.children[1]);
    fold.addEventListener("toggle", () => {
      const names = fold.dataset.predictions.split(" ");
      const kept = names.map((name) => localStorage.getItem(key(name))).filter(Boolean);
      said.textContent = kept.length ? `You predicted: ${kept.join("; ")}` : "You have made no prediction.";
    });
  }

  // An explorer: the frame at the places of its sliders and menus, the last one's values following each other
  for (const explorer of document.querySelectorAll(".explorer")) {
    const controls = [...explorer.querySelectorAll("input, select")];
    const show = () => {
      let frame = 0;
      for (const control of controls) {
        const values = control.dataset.values ? JSON.parse(control.dataset.values) : [...control.options];
        frame = frame * values.length + Number(control.value);
        if (!control.dataset.values) continue;
        control.setAttribute("aria-valuetext", values[control.value]);
        control.nextElementSibling.textContent = values[control.value];
      }
      explorer.querySelector("img").src = `${explorer.dataset.frames}-${frame}.png`;
    };
    for (const control of controls) {
      // not where a reload left it
      control.value = (control.querySelector("option[selected]") ?? control).getAttribute("value");
      control.addEventListener("input", show);
    }
  }

  // The link by which a class's own hub pulls a lesson
  for (const form of document.querySelectorAll(".pull")) {
    const [hub, lesson, said] = ["input", "select", "output"].map((part) => form.querySelector(part));
    const show = () => {
      said.replaceChildren();
      if (!hub.value || !hub.validity.valid) return;
      const link = said.appendChild(document.createElement("a"));
      link.textContent = link.href = lesson.value.replace(form.dataset.hub, hub.value.replace(/\/+$/, ""));
    };
    for (const part of [hub, lesson]) part.addEventListener("input", show);
  }

  // The atlas of claims: filters, a search, both for the table above too, pictures that come when a claim is opened, and an address for each
  const claims = [...document.querySelectorAll(".claims > details")];
  const choices = [...document.querySelectorAll(".claims-filter select")];
  const search = document.querySelector(".claims-filter input");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const claim of claims) {
      const text = claim.textContent.toLowerCase();
      claim.hidden = choices.some(({ name, value }) => value && claim.dataset[name] !== value) || !words.every((word) => text.includes(word));
    }
    const shown = claims.filter((claim) => !claim.hidden);
    document.querySelector(".claims-count").textContent = `${shown.length} of ${claims.length}`;
    for (const row of document.querySelectorAll(".summary tbody tr")) count(row, shown);
  };
  // A row of sources by verdict: its numbers and its bar's stretches are those of the claims that are shown
  const count = (row, shown) => {
    const [source, ...numbers] = row.cells;
    const found = shown.filter(({ dataset }) => dataset.source === source.textContent);
    let x = 0;
    row.querySelectorAll("rect").forEach((stretch, place) => {
      const number = found.filter(({ dataset }) => dataset.verdict === stretch.dataset.verdict).length;
      numbers[place].textContent = number || "–";
      stretch.setAttribute("x", x);
      stretch.setAttribute("width", number * row.querySelector("svg").dataset.claim);
      x += number * row.querySelector("svg").dataset.claim;
    });
    row.hidden = !x;
  };
  for (const claim of claims) {
    claim.addEventListener("toggle", () => {
      const picture = claim.querySelector("img[data-src]");
      if (claim.open && picture) picture.src = picture.dataset.src;
    });
  }
  const open = () => {
    const claim = claims.find(({ id }) => id === decodeURIComponent(location.hash.slice(1)));
    if (!claim) return;
    claim.open = true;
    claim.hidden = false;
    claim.scrollIntoView();
  };
  for (const choice of choices) choice.addEventListener("change", filter);
  search?.addEventListener("input", filter);
  if (claims.length) filter();
  open();
  addEventListener("hashchange", open);
});

// A formula that is wider than the page scrolls: with the keyboard, too.
addEventListener("load", () =>
  window.MathJax?.startup?.promise.then(() => {
    for (const formula of document.querySelectorAll("mjx-container[display]")) formula.tabIndex = 0;
  }),
);
