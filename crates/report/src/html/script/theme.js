// Light or dark: the system's choice until the reader makes one, which is kept if the browser allows that for files.
var themeChanged = [];
(function () {
  var root = document.documentElement, button = document.getElementById("theme");
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function kept() { try { return localStorage.getItem("fencepost-theme"); } catch (_) { return null; } }
  function isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches; }
  function show() {
    button.setAttribute("aria-pressed", String(isDark()));
    themeChanged.forEach(function (f) { f(); });
  }
  var chosen = kept();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  button.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("fencepost-theme", root.dataset.theme); } catch (_) { /* not kept, then */ }
    show();
  });
  if (dark.addEventListener) dark.addEventListener("change", show);
  show();
})();
