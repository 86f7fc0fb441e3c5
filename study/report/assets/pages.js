// A page with many sections shows one at a time: that of the address, else the first. On paper it is whole.
if (document.querySelector('[id^="section-"]')) {
  const sections = [...document.querySelectorAll('body > section')];
  const links = [...document.querySelectorAll('nav a')];
  const show = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest('section');
    const at = Math.max(0, sections.indexOf(named));
    document.body.classList.toggle('later', at > 0);
    sections.forEach((section, index) => section.classList.toggle('hidden', index !== at));
    for (const link of links) {
      link.hash === `#${sections[at].id}` ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current');
    }
    if (named) document.querySelector('nav').scrollIntoView();
  };
  sections.forEach((section, at) => {
    const turn = make('p', section);
    turn.className = 'turn';
    for (const [word, other] of [['← ', sections[at - 1]], ['→ ', sections[at + 1]]]) {
      if (other) make('a', turn, word + other.querySelector('h2').textContent).href = `#${other.id}`;
    }
  });
  addEventListener('hashchange', show);
  show();
}
