// A time line: lanes, slider, table and events that show the same place. Made when it comes near the view.
var FEW = 6;
function timeline(section) {
  var model = new Model(JSON.parse(section.querySelector('script[type="application/json"]').textContent));
  var plot = section.querySelector(".plot"), room = section.querySelector(".room"), names = section.querySelector(".names");
  var slider = section.querySelector("input[type=range]"), home = section.querySelector(".home"), more = section.querySelector(".more");
  var body = section.querySelector(".states tbody"), words = section.querySelector(".where"), details = section.querySelector(".events");
  var list = section.querySelector(".list");
  list.dataset.prefix = "e-" + section.dataset.timeline + "-";
  var view = { model: model, canvas: section.querySelector("canvas"), plot: plot, place: model.crash, rows: [], step: 10, width: 0, colours: colours(section) };
  var events = new EventList(view, list, section.querySelector(".stack"), function (place) { go(place, true); });
  var pending = false, moved = false, follow = false;

  // At most once per frame, however fast the slider moves.
  function redraw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(function () {
      pending = false;
      if (moved) show();
      draw(view);
    });
  }
  function layout() {
    view.width = plot.clientWidth;
    view.step = Math.min(46, Math.max(8, (view.width - 2 * PAD) / Math.max(1, model.count)));
    room.style.width = Math.max(view.width, model.count * view.step + 2 * PAD) + "px";
    redraw();
  }
  function choose(all) {
    var named = model.lanes.filter(function (lane) { return lane.lane.side !== "other"; });
    var others = model.lanes.filter(function (lane) { return lane.lane.side === "other" && lane.stores.length; });
    view.rows = named.concat(all ? others : others.slice(0, Math.max(0, FEW - named.length)));
    more.hidden = named.length + others.length <= Math.max(FEW, named.length);
    more.textContent = all ? "show fewer lines" : "show all " + (named.length + others.length) + " lines";
    names.replaceChildren.apply(names, view.rows.map(function (lane) {
      var label = element("div", lane.lane.side);
      label.title = laneName(lane) + " · " + laneOffset(lane);
      label.appendChild(element("b", "", laneName(lane)));
      label.appendChild(element("span", "", laneOffset(lane)));
      return label;
    }));
  }
  function go(place, reveal) {
    view.place = Math.max(0, Math.min(model.count, place));
    slider.value = view.place;
    moved = true;
    follow = follow || reveal;
    redraw();
  }
  function show() {
    var next = model.events[view.place], at = PAD + view.place * view.step;
    if (follow && (at < plot.scrollLeft + 20 || at > plot.scrollLeft + view.width - 20)) plot.scrollLeft = at - view.width / 2;
    if (details.open) events.reveal();
    moved = follow = false;
    slider.setAttribute("aria-valuetext", (view.place === model.crash ? "where it failed, " : "") + (next ? "before event " + next.id + ", " + next.what : "at the end of the window"));
    home.disabled = view.place === model.crash;
    words.replaceChildren(where(model, view.place));
    body.replaceChildren.apply(body, view.rows.map(function (lane) { return stateRow(model, lane, view.place); }));
  }
  slider.max = model.count;
  choose(false);
  layout();
  slider.value = view.place;
  follow = true;
  show();
  cutWords(section.querySelector(".cut"), model);
  slider.addEventListener("input", function () { go(Number(slider.value), true); });
  section.querySelectorAll(".step").forEach(function (button) {
    button.addEventListener("click", function () { go(view.place + Number(button.dataset.step), true); });
  });
  home.addEventListener("click", function () { go(model.crash, true); slider.focus(); });
  more.addEventListener("click", function () {
    var all = more.getAttribute("aria-pressed") !== "true";
    more.setAttribute("aria-pressed", String(all));
    choose(all);
    go(view.place, false);
  });
  plot.addEventListener("scroll", redraw);
  details.addEventListener("toggle", function () { if (details.open) events.reveal(); });
  function point(event) {
    var at = event.clientX - view.canvas.getBoundingClientRect().left + plot.scrollLeft;
    go(Math.round((at - PAD) / view.step), false);
  }
  view.canvas.addEventListener("pointerdown", function (event) {
    if (event.pointerType === "mouse") view.canvas.setPointerCapture(event.pointerId);
    point(event);
  });
  view.canvas.addEventListener("pointermove", function (event) {
    if (event.buttons & 1) return point(event);
    var over = model.events[Math.floor((event.clientX - view.canvas.getBoundingClientRect().left + plot.scrollLeft - PAD) / view.step)];
    view.canvas.title = over ? "event " + over.id + ": " + over.what + (over.place === undefined ? "" : " in " + model.placeName(over.place)) : "";
  });
  themeChanged.push(function () { view.colours = colours(section); redraw(); });
  if ("ResizeObserver" in window) new ResizeObserver(function () { if (plot.clientWidth !== view.width) layout(); }).observe(plot);
  section.dataset.ready = "true";
}
function cutWords(to, model) {
  var parts = [];
  if (model.data.events_left_out) parts.push(model.data.events_left_out.toLocaleString("en") + " earlier events of these lines are not shown.");
  if (model.data.lanes_left_out) parts.push(model.data.lanes_left_out.toLocaleString("en") + " more lines were stored to nearby and are not shown.");
  to.textContent = parts.join(" ");
  to.hidden = !parts.length;
}
(function () {
  var sections = document.querySelectorAll(".timeline");
  if (!("IntersectionObserver" in window)) return sections.forEach(timeline);
  var observer = new IntersectionObserver(function (seen) {
    seen.forEach(function (one) {
      if (!one.isIntersecting) return;
      observer.unobserve(one.target);
      timeline(one.target);
    });
  }, { rootMargin: "600px 0px" });
  sections.forEach(function (section) { observer.observe(section); });
})();
