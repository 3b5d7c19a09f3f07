// Copy buttons. The clipboard is not there for files in every browser; then the text is selected instead.
document.querySelectorAll(".copy").forEach(function (button) {
  function said(word) {
    button.textContent = word;
    setTimeout(function () { button.textContent = "Copy"; }, 1500);
  }
  function select() {
    var range = document.createRange(), selection = window.getSelection();
    range.selectNodeContents(button.parentNode.querySelector("code"));
    selection.removeAllRanges();
    selection.addRange(range);
    said(document.execCommand && document.execCommand("copy") ? "Copied" : "Selected");
  }
  button.addEventListener("click", function () {
    if (!navigator.clipboard) return select();
    navigator.clipboard.writeText(button.dataset.copy).then(function () { said("Copied"); }, select);
  });
});
