// Search, light and dark, and a menu that begins closed on narrow screens. No library, no network.
const MOST = 12; // results shown
const root = document.documentElement, base = document.body.dataset.base;
const query = document.getElementById("query"), found = document.getElementById("found");

const kept = (() => { try { return localStorage.getItem("shade") } catch { return null } })();
if (kept) root.style.colorScheme = kept;
document.getElementById("shade").onclick = () => {
  const now = root.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.style.colorScheme = now === "dark" ? "light" : "dark";
  try { localStorage.setItem("shade", root.style.colorScheme) } catch { /* a browser that keeps nothing */ }
};
if (matchMedia("(max-width: 60rem)").matches) document.querySelector(".menu").open = false;

// A section counts more if the words are in its heading, then in the title of its page, then in its text; the guide counts
// more than the lists of options.
function score(section, words) {
  let sum = 0;
  for (const word of words) {
    const at = [section.heading, section.page, section.text].findIndex((text) => text.toLowerCase().includes(word));
    if (at < 0) return 0;
    sum += [20, 8, 1][at] + (section.heading.toLowerCase() === word ? 30 : 0);
  }
  return section.url.includes("/reference/") ? sum / 4 : sum;
}

function around(text, words) {
  const at = Math.max(0, ...words.map((word) => text.toLowerCase().indexOf(word)));
  const from = Math.max(0, at - 50);
  return (from ? "… " : "") + text.slice(from, from + 150) + (text.length > from + 150 ? " …" : "");
}

function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const best = words.length ? SECTIONS.map((section) => [score(section, words), section]).filter(([sum]) => sum) : [];
  best.sort((one, other) => other[0] - one[0]);
  found.replaceChildren(...best.slice(0, MOST).map(([, section]) => {
    const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
    link.href = base + "/" + section.url;
    link.textContent = section.heading === section.page ? section.page : section.page + ": " + section.heading;
    text.textContent = around(section.text, words);
    item.append(link, text);
    return item;
  }));
  if (words.length && !best.length) {
    const item = document.createElement("li");
    item.textContent = "Nothing found";
    found.append(item);
  }
  found.hidden = !words.length;
}

query.addEventListener("input", search);
query.addEventListener("focus", search);
document.addEventListener("click", (event) => { if (!event.target.closest("search")) found.hidden = true });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { found.hidden = true; query.blur() }
  if (event.key === "/" && document.activeElement !== query) { event.preventDefault(); query.focus() }
  if (event.key === "Enter" && document.activeElement === query) found.querySelector("a")?.click();
});
const asked = new URLSearchParams(location.search).get("q"); // index.html?q=gap
if (asked) { query.value = asked; search() }
