// Which findings are shown: text, severity, class, rule. Within a group any match will do; the groups must all match.
(function () {
  var form = document.getElementById("filters");
  if (!form) return;
  var text = document.getElementById("text"), rule = document.getElementById("rule");
  var shown = document.getElementById("shown"), clear = document.getElementById("clear");
  var chips = Array.prototype.slice.call(form.querySelectorAll("[data-filter]"));
  var findings = Array.prototype.slice.call(document.querySelectorAll(".finding"));
  var entries = {};
  document.querySelectorAll(".index li").forEach(function (entry) { entries[entry.dataset.of] = entry; });

  function pressed(kind) {
    return chips.filter(function (chip) { return chip.dataset.filter === kind && chip.getAttribute("aria-pressed") === "true"; })
      .map(function (chip) { return chip.dataset.key; });
  }
  function apply() {
    var words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    var severities = pressed("severity"), classes = pressed("class"), count = 0;
    findings.forEach(function (finding) {
      var data = finding.dataset;
      var fits = (!severities.length || severities.includes(data.severity)) && (!classes.length || classes.includes(data.class)) &&
        (!rule.value || rule.value === data.rule) && words.every(function (word) { return data.words.includes(word); });
      finding.hidden = !fits;
      if (entries[data.id]) entries[data.id].hidden = !fits;
      count += fits;
    });
    shown.textContent = count + " of " + findings.length + " shown";
    clear.hidden = count === findings.length && !words.length;
    document.getElementById("nothing").hidden = count > 0;
  }
  chips.forEach(function (chip) {
    chip.addEventListener("click", function () {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      apply();
    });
  });
  text.addEventListener("input", apply);
  rule.addEventListener("change", apply);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  clear.addEventListener("click", function () {
    text.value = rule.value = "";
    chips.forEach(function (chip) { chip.setAttribute("aria-pressed", "false"); });
    apply();
    text.focus();
  });
  document.addEventListener("keydown", function (event) {
    var typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range";
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      text.focus();
    }
  });
  // A link to a finding shows it, whatever the filter says.
  function reveal() {
    var wanted = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (wanted && wanted.tagName === "DETAILS") wanted.open = true;
    if (wanted && wanted.hidden && wanted.classList.contains("finding")) clear.click();
    var fold = wanted && wanted.querySelector(".fold");
    if (fold && wanted.classList.contains("finding")) fold.open = true;
  }
  // The same link again is no change of the hash.
  document.querySelectorAll(".index a").forEach(function (link) { link.addEventListener("click", function () { setTimeout(reveal); }); });
  window.addEventListener("beforeprint", function () { document.querySelectorAll(".fold").forEach(function (fold) { fold.open = true; }); });
  window.addEventListener("hashchange", reveal);
  reveal();
  if ("IntersectionObserver" in window) {
    var observer = new IntersectionObserver(function (seen) {
      seen.forEach(function (one) {
        var entry = entries[one.target.dataset.id], link = entry && entry.querySelector("a");
        if (!link) return;
        if (one.isIntersecting) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
      });
    }, { rootMargin: "-30% 0px -60% 0px" });
    findings.forEach(function (finding) { observer.observe(finding); });
  }
})();
