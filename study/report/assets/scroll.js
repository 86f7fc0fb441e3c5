// Wide tables: a hint how much of them is out of sight, and scrolling by the keyboard.
for (const box of document.querySelectorAll('.scroll')) {
  const hint = document.createElement('p');
  hint.className = 'wide';
  box.before(hint);
  const update = () => {
    const hidden = box.scrollWidth - box.clientWidth;
    const columns = [...box.querySelectorAll('thead tr:last-child th')];
    const edge = box.getBoundingClientRect().right;
    const beyond = columns.filter(cell => cell.getBoundingClientRect().right > edge + 1).length;
    hint.hidden = hidden < 2;
    hint.textContent = beyond > 0 ? `${beyond} of ${columns.length} columns are to the right: scroll →` : 'scroll ←';
    if (hidden < 2) return box.removeAttribute('tabindex');
    box.tabIndex = 0;
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', box.querySelector('caption')?.textContent.slice(0, 80) ?? 'table');
  };
  box.addEventListener('scroll', update, { passive: true });
  new ResizeObserver(update).observe(box);
  update();
}
