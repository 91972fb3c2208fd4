"use strict";
// The summary alone, on one sheet: by a button, or by ?summary in the address.
(() => {
  const root = document.documentElement;
  const place = document.querySelector(".actions");
  if (!place) return;
  const isAsked = new URLSearchParams(location.search).has("summary");
  const only = (isOn) => {
    if (isOn) root.dataset.only = "summary";
    else delete root.dataset.only;
  };
  const action = (text, act) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "action", textContent: text });
    button.addEventListener("click", () => act(button));
    place.append(button);
  };
  action("Print summary", () => {
    const before = root.dataset.only === "summary";
    only(true);
    addEventListener("afterprint", () => only(before), { once: true });
    print();
  });
  const names = { true: "Show the whole report", false: "Show the summary alone" };
  action(names[isAsked], (button) => {
    const next = root.dataset.only !== "summary";
    only(next);
    button.textContent = names[next];
  });
  only(isAsked);
})();
