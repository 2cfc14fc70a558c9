"use strict";
// Invariant: nothing is read but this document, and nothing is written as HTML.

/** Unfolds what the address points to, and what a link of the page goes to. */
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target instanceof HTMLDetailsElement) target.open = true;
  target.scrollIntoView();
}

/** Searches the findings for all words that are typed. */
function search() {
  const field = document.getElementById("search");
  if (!field) return;
  const hits = document.getElementById("hits");
  const all = hits.textContent;
  const cards = [...document.querySelectorAll(".finding")];
  const texts = cards.map((card) => card.textContent.toLowerCase());
  field.parentElement.hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    cards.forEach((card, at) => {
      card.hidden = !words.every((word) => texts[at].includes(word));
      shown += card.hidden ? 0 : 1;
    });
    hits.textContent = words.length ? `${shown} of ${cards.length} shown` : all;
  });
}
