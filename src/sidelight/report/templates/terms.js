"use strict";
// A word of the glossary says what it means when it is pointed at or reached by keyboard; Escape hides it.
(() => {
  const GAP = 6;
  const EDGE = 8;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  let shown = null;
  let leaving = 0;

  const place = () => {
    if (!shown) return;
    const word = shown.getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const left = Math.min(word.left, document.documentElement.clientWidth - box.width - EDGE);
    const isLow = word.bottom + GAP + box.height > innerHeight && word.top > box.height + GAP;
    tip.style.left = `${Math.max(left, EDGE)}px`;
    tip.style.top = `${isLow ? word.top - GAP - box.height : word.bottom + GAP}px`;
  };

  const hide = () => {
    clearTimeout(leaving);
    tip.hidden = true;
    shown = null;
  };

  const show = (word) => {
    const entry = document.getElementById(`term-${word.dataset.term}`);
    if (!entry) return;
    clearTimeout(leaving);
    const name = document.createElement("strong");
    name.textContent = entry.querySelector("dt").textContent;
    tip.replaceChildren(name, " ", entry.querySelector("dd").textContent);
    tip.hidden = false;
    shown = word;
    place();
  };

  const wordAt = (event) => event.target.closest?.("[data-term]");

  document.addEventListener("pointerover", (event) => {
    const word = wordAt(event);
    if (word) show(word);
    else if (tip.contains(event.target)) clearTimeout(leaving); // one may point at the text itself
  });
  document.addEventListener("pointerout", (event) => {
    if (shown && (wordAt(event) === shown || tip.contains(event.target)) && document.activeElement !== shown) {
      clearTimeout(leaving);
      leaving = setTimeout(hide, 200);
    }
  });
  document.addEventListener("focusin", (event) => {
    const word = wordAt(event);
    if (word && word.matches(":focus-visible")) show(word);
    else hide();
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  document.addEventListener("click", (event) => {
    const word = wordAt(event);
    if (word?.matches("a") && event.pointerType === "touch") { // a finger cannot point without pressing
      event.preventDefault();
      show(word);
    }
  });
  addEventListener("scroll", place, { capture: true, passive: true });
  addEventListener("resize", place);
})();
