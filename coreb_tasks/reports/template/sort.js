"use strict";
// Sorts a table by a column: numbers by value, texts in the order of the alphabet, what is missing always last.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  heads.forEach((head, position) => {
    const isText = head.classList.contains("text");
    const key = (row) => {
      const cell = row.cells[position];
      return isText ? cell.textContent : cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
    };
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => {
      const first = isText ? "ascending" : "descending";
      const next = { ascending: "descending", descending: "ascending" }[head.getAttribute("aria-sort")] ?? first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const isMissing = (value) => Number.isNaN(value) || value === "–";
      rows.sort((one, other) => {
        const [a, b] = [key(one), key(other)];
        if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
        return sign * (isText ? a.localeCompare(b, "en", { numeric: true }) : a - b);
      });
      table.tBodies[0].append(...rows);
    });
    head.replaceChildren(button);
  });
}
