// Says what a mark stands for where the pointer is on it. Everything that is said is in the tables, too.
const told = document.getElementById("told");
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest?.("svg [data-told]");
  told.hidden = !mark;
  if (told.hidden) return;
  told.textContent = mark.dataset.told;
  const right = Math.min(event.clientX + 12, innerWidth - told.offsetWidth - 4);
  const below = event.clientY + 16 + told.offsetHeight > innerHeight;
  told.style.left = `${Math.max(4, right)}px`;
  told.style.top = `${below ? event.clientY - told.offsetHeight - 12 : event.clientY + 16}px`;
});
