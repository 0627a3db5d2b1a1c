// Sorts a table by the column whose head is pressed: numbers by value, texts by letters, what is missing last.
"use strict";
const value = (cell) => {
  const text = cell.textContent.trim(), number = parseFloat(text.replace(/,/g, ""));
  return text === "" || text === "-" || text === "none" ? null : Number.isNaN(number) ? text : number;
};
const compare = (a, b, sign) => {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b));
};
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = button.closest("table").tBodies[0];
    const at = head.cellIndex, up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...body.rows].sort((a, b) => compare(value(a.cells[at]), value(b.cells[at]), up ? 1 : -1));
    body.append(...rows);
  });
}
