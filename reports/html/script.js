"use strict";
(() => {
  const tip = document.getElementById("tip");
  let on = null;
  // A title in a drawing is shown by the browser itself, late and out of place:
  // its text is kept here and shown by this script.
  const texts = new WeakMap();
  const all = new Map();
  for (const svg of document.querySelectorAll("figure .draw svg")) {
    const title = svg.querySelector(":scope > title"), desc = svg.querySelector(":scope > desc");
    svg.removeAttribute("aria-labelledby");
    svg.setAttribute("aria-label", title.textContent + ". " + desc.textContent);
    title.remove();
    const marks = [...svg.querySelectorAll("g.p")];
    for (const g of marks) {
      const t = g.querySelector("title");
      texts.set(g, t.textContent);
      t.remove();
    }
    if (marks.length) {
      svg.setAttribute("tabindex", "0");
      all.set(svg, { marks, boxes: null, at: -1 });
    }
  }
  const hide = () => {
    if (on) on.classList.remove("on");
    on = null;
    tip.hidden = true;
  };
  const show = (g) => {
    if (on === g) return;
    hide();
    on = g;
    g.classList.add("on");
    tip.textContent = texts.get(g);
    tip.hidden = false;
    const r = g.getBoundingClientRect(), t = tip.getBoundingClientRect(), gap = 10;
    const x = Math.min(Math.max(gap, r.left + r.width / 2 - t.width / 2), innerWidth - t.width - gap);
    const above = r.top - t.height - gap;
    tip.style.left = x + "px";
    tip.style.top = (above > gap ? above : Math.min(r.bottom + gap, innerHeight - t.height - gap)) + "px";
  };
  // The mark whose box is nearest to a place, if it is near.
  const nearest = (svg, event) => {
    const s = all.get(svg);
    s.boxes ??= s.marks.map((g) => g.getBBox());
    const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = -1, least = 18;
    s.boxes.forEach((b, i) => {
      const d = Math.hypot(Math.max(b.x - p.x, 0, p.x - b.x - b.width), Math.max(b.y - p.y, 0, p.y - b.y - b.height));
      if (d < least || d === 0) { best = i; least = d; }
    });
    return best;
  };
  const point = (event) => {
    const svg = event.target.closest && event.target.closest("svg");
    if (!svg || !all.has(svg)) return hide();
    const i = nearest(svg, event);
    if (i < 0) return hide();
    all.get(svg).at = i;
    show(all.get(svg).marks[i]);
  };
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const s = all.get(document.activeElement);
    if (!s) return;
    const last = s.marks.length - 1;
    const to = { ArrowRight: s.at + 1, ArrowDown: s.at + 1, ArrowLeft: s.at - 1, ArrowUp: s.at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    s.at = Math.min(Math.max(to, 0), last);
    show(s.marks[s.at]);
  });
  // On paper nothing can be opened.
  addEventListener("beforeprint", () => document.querySelectorAll("figure details").forEach((d) => { d.open = d.querySelectorAll("tr").length < 60; }));
})();
