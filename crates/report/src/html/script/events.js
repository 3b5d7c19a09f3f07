// The list of events: only the rows in view exist. Arrow keys move the crash along.
var LINE = 26;
function EventList(view, list, stack, onPlace) {
  var model = view.model, tall = list.querySelector(".tall"), self = this;
  tall.style.height = model.count * LINE + "px";
  function describe(event) {
    if (event.writes && event.writes.length) return event.writes.map(function (write) { return model.writeName(write); }).join("; ");
    if (event.lane !== undefined) return laneName(model.lanes[event.lane]) + " · " + model.placeName(event.place);
    if (event.operation !== undefined) return "operation " + event.operation;
    return model.placeName(event.place);
  }
  function row(index) {
    var event = model.events[index], guilty = (event.writes || []).some(function (write) { return write.guilty; });
    var made = element("div", "row" + (index >= view.place ? " after" : "") + (guilty ? " guilty" : ""));
    made.id = list.dataset.prefix + index;
    made.style.top = index * LINE + "px";
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", String(index === view.place - 1));
    made.setAttribute("aria-posinset", index + 1);
    made.setAttribute("aria-setsize", model.count);
    made.appendChild(element("span", "", event.id.toLocaleString("en")));
    made.appendChild(element("span", "", (model.threads > 1 ? "t" + event.thread + " " : "") + event.what));
    made.appendChild(element("span", "", describe(event)));
    made.addEventListener("click", function () { onPlace(index + 1); });
    return made;
  }
  this.show = function () {
    if (!list.clientHeight) return;
    var first = Math.max(0, Math.floor(list.scrollTop / LINE) - 4), last = Math.min(model.count, Math.ceil((list.scrollTop + list.clientHeight) / LINE) + 4);
    var rows = document.createDocumentFragment();
    for (var i = first; i < last; i++) rows.appendChild(row(i));
    tall.replaceChildren(rows);
    if (view.place > 0) list.setAttribute("aria-activedescendant", list.dataset.prefix + (view.place - 1));
    this.showStack();
  };
  this.showStack = function () {
    var event = model.events[view.place - 1];
    stack.replaceChildren();
    if (!event) return;
    stack.appendChild(element("h4", "", "event " + event.id.toLocaleString("en") + ": " + event.what + ", thread " + event.thread));
    if (event.place === undefined) return;
    var place = model.data.places[event.place], frames = element("ol");
    if (place.text) stack.appendChild(element("code", "", place.text));
    place.frames.forEach(function (number, depth) {
      var frame = model.data.frames[number], entry = element("li", depth < place.own ? "foreign" : "");
      entry.appendChild(element("b", "", frame.function || "?"));
      entry.appendChild(element("span", "", " " + (frame.file ? frame.file + ":" + frame.line : frame.module + "+0x" + frame.address.toString(16))));
      frames.appendChild(entry);
    });
    stack.appendChild(frames);
  };
  this.reveal = function () {
    var top = (view.place - 1) * LINE;
    if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - LINE) list.scrollTop = Math.max(0, top - list.clientHeight / 2);
    this.show();
  };
  list.addEventListener("scroll", function () { requestAnimationFrame(function () { self.show(); }); });
  list.addEventListener("keydown", function (event) {
    var page = Math.max(1, Math.floor(list.clientHeight / LINE) - 1);
    var to = { ArrowDown: view.place + 1, ArrowUp: view.place - 1, PageDown: view.place + page, PageUp: view.place - page, Home: 0, End: model.count }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    onPlace(to);
  });
}
