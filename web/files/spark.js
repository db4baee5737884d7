/**
 * Draws values, oldest first, as a line with the area under it, into an empty
 * <svg class="spark">. It fills the element whatever its size.
 */
export function spark(svg, values) {
  const width = 100;
  const height = 30;
  const top = Math.max(...values, 1e-9);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((v, i) => `${(i * step).toFixed(2)},${(height - 1 - (v / top) * (height - 3)).toFixed(2)}`);
  const line = `M${points.join("L")}`;
  if (!svg.firstChild) {
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    for (const name of ["area", "line"]) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("class", name);
      svg.append(path);
    }
  }
  svg.firstChild.setAttribute("d", `${line}L${width},${height}L0,${height}Z`);
  svg.lastChild.setAttribute("d", line);
}
