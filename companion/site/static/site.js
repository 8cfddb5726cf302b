// Predictions are kept in this browser, and come back beside what was measured; the claims can be filtered.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll(".bd-sidebar summary, nav summary")) {
    if (!arrow.textContent.trim()) arrow.setAttribute("aria-label", "Show the pages within");
  }
  const sidebar = document.querySelector(".bd-sidebar-primary"); // the theme gives it no landmark
  sidebar?.setAttribute("role", "complementary");
  sidebar?.setAttribute("aria-label", "The course");
  const key = (name) => `prediction:${location.pathname.split("/").pop()}:${name}`;
  for (const box of document.querySelectorAll("input[data-prediction]")) {
    box.value = localStorage.getItem(key(box.dataset.prediction)) ?? "";
    box.addEventListener("input", () => localStorage.setItem(key(box.dataset.prediction), box.value));
  }
  for (const fold of document.querySelectorAll("details.measured")) {
    const said = fold.insertBefore(document.createElement("p"), fold.children[1]);
    fold.addEventListener("toggle", () => {
      const kept = localStorage.getItem(key(fold.dataset.prediction));
      said.textContent = kept ? `You predicted: ${kept}` : "You have made no prediction.";
    });
  }

  // An explorer: the frame at the sliders' places, the last slider's values following each other
  for (const explorer of document.querySelectorAll(".explorer")) {
    const sliders = [...explorer.querySelectorAll("input")];
    const show = () => {
      let frame = 0;
      for (const slider of sliders) {
        const label = JSON.parse(slider.dataset.values)[slider.value];
        slider.setAttribute("aria-valuetext", label);
        slider.nextElementSibling.textContent = label;
        frame = frame * (Number(slider.max) + 1) + Number(slider.value);
      }
      explorer.querySelector("img").src = `${explorer.dataset.frames}-${frame}.png`;
    };
    for (const slider of sliders) {
      slider.value = slider.getAttribute("value"); // not where a reload left it
      slider.addEventListener("input", show);
    }
  }

  const rows = [...document.querySelectorAll("table.claims tbody tr")];
  const choices = [...document.querySelectorAll(".claims-filter select")];
  const filter = () => {
    for (const row of rows) row.hidden = choices.some(({ name, value }) => value && row.dataset[name] !== value);
    document.querySelector(".claims-count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  for (const choice of choices) choice.addEventListener("change", filter);
  if (choices.length) filter();
});

// A formula that is wider than the page scrolls: with the keyboard, too.
addEventListener("load", () =>
  window.MathJax?.startup?.promise.then(() => {
    for (const formula of document.querySelectorAll("mjx-container[display]")) formula.tabIndex = 0;
  }),
);
