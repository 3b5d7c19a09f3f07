// Colours for source: comments, strings, numbers and the keywords of C, C++ and Rust. Works on text, line by line.
(function () {
  var TOKEN = /(\/\/.*|\/\*.*?(?:\*\/|$)|^\s*#\s*(?:include|if|ifdef|ifndef|else|elif|endif|define|undef|pragma)\b.*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)')|\b(0x[0-9a-fA-F]+|\d[\d_.]*)\b|\b(as|async|auto|await|bool|break|case|catch|char|class|const|constexpr|continue|crate|default|delete|do|double|else|enum|extern|false|float|fn|for|if|impl|inline|int|let|long|loop|match|mod|move|mut|namespace|new|NULL|nullptr|operator|private|pub|public|ref|return|self|short|signed|sizeof|static|struct|switch|template|this|throw|trait|true|try|typedef|typename|union|unsafe|unsigned|use|using|virtual|void|volatile|where|while)\b/g;
  document.querySelectorAll(".src pre").forEach(function (pre) {
    var text = pre.textContent, last = 0, parts = document.createDocumentFragment();
    text.replace(TOKEN, function (all, comment, string, number, _keyword, at) {
      parts.append(text.slice(last, at));
      var span = document.createElement("span");
      span.className = comment ? "c" : string ? "s" : number ? "n" : "k";
      span.textContent = all;
      parts.append(span);
      last = at + all.length;
      return all;
    });
    parts.append(text.slice(last));
    pre.replaceChildren(parts);
  });
})();
