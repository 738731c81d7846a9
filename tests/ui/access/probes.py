"""Scripts that say what is wrong with what is on the screen."""

from __future__ import annotations

CONTROLS = (
    "button, select, input:not([type=file]), textarea, summary, a[href], [role=slider], [role=application], "
    "[role=option], [role=tab], [tabindex]"
)
"""What somebody may press, point at or move."""

LOST_AT_ZOOM = """(controls) => {
  const found = [];
  const told = (one) => one.outerHTML.replace(/\\s+/g, ' ').slice(0, 140);
  const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: false })
    && !one.closest('[aria-hidden=true], .visually-hidden, [inert]');
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) found.push(`scrolls sideways: ${page.scrollWidth}`);
  const modal = [...document.querySelectorAll('dialog:modal')].at(-1);
  const fixed = [...document.querySelectorAll('.vv-tour, .vv-help-card')].filter(seen);
  for (const card of [...fixed, ...(modal ? [modal] : [])]) {
    const box = card.getBoundingClientRect();
    if (box.top < 0 || box.left < 0 || box.right > innerWidth || box.bottom > innerHeight)
      found.push(`off the screen: ${told(card)}`);
  }
  const over = modal ?? [...document.querySelectorAll('.vv-popover')].find(seen); // what is below it comes back when it closes
  if (over && over.scrollWidth > over.clientWidth + 1) found.push(`wider than itself: ${told(over)}`);
  const before = [scrollX, scrollY];
  for (const one of (over ?? document).querySelectorAll(controls)) {
    if (!seen(one) || one.disabled) continue;
    const target = one.labels?.[0] && getComputedStyle(one).opacity === '0' ? one.labels[0] : one;
    target.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    const box = target.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const [x, y] = [box.left + box.width / 2, box.top + Math.min(box.height / 2, innerHeight / 2)];
    const hit = document.elementFromPoint(x, y);
    if (fixed.some((card) => card.contains(hit) && !card.contains(one))) continue; // it moves away with the page
    if (!hit || !(target.contains(hit) || hit.contains(target) || [...(one.labels ?? [])].some((label) => label.contains(hit))))
      found.push(`covered or cut off: ${told(one)} by ${hit ? told(hit) : 'the edge'}`);
  }
  const walker = document.createTreeWalker(over ?? document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const owner = text.parentElement;
    if (!text.data.trim() || !seen(owner) || !owner.checkVisibility({ opacityProperty: true })) continue;
    if (owner.closest('script, style, math, option, .vv-unseen, .sr-only, svg')) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    if (box.width < 1) continue;
    for (let place = owner; place && place !== document.body; place = place.parentElement) {
      const style = getComputedStyle(place);
      const edge = place.getBoundingClientRect();
      const cut = (['hidden', 'clip'].includes(style.overflowX) && (box.right > edge.right + 1.5 || box.left < edge.left - 1.5))
        || (['hidden', 'clip'].includes(style.overflowY) && (box.bottom > edge.bottom + 3 || box.top < edge.top - 3));
      if (cut && !(owner.closest('[title]'))) found.push(`cut: ${text.data.trim().slice(0, 50)} in ${told(place)}`);
      if (cut || style.overflowX !== 'visible') break;
      if (style.position === 'fixed') break;
    }
  }
  scrollTo(...before);
  return [...new Set(found)];
}"""
"""What is cut off, covered or beside the screen: controls, text, and cards over the page."""

KEYS = """(() => {
  const HIDDEN = '[aria-hidden=true], .visually-hidden, [inert]';
  const visible = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest(HIDDEN)
    && one.getBoundingClientRect().width > 1;
  const told = (one) => one.outerHTML.replace(/\\s+/g, ' ').slice(0, 150);
  const near = (one) => [one, ...one.children, ...(one.labels ?? []), one.parentElement];
  const look = (one) => near(one).flatMap((part) => ['', '::before', '::after'].map((pseudo) => {
    const { outlineStyle, outlineColor, outlineWidth, boxShadow, borderColor } = getComputedStyle(part, pseudo);
    return [outlineStyle === 'none' ? '' : outlineStyle + outlineColor + outlineWidth, boxShadow, borderColor].join();
  })).join();
  const reached = new Set(); // ever
  const passed = new Set(); // on this way
  /** Whether the focus is where it can be seen, and looks otherwise than without it; null outside the page. */
  const step = () => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    const [isNew, focused] = [!passed.has(one), look(one)];
    for (const seen of [reached, passed]) seen.add(one);
    const box = one.getBoundingClientRect();
    const isOn = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
    one.blur();
    const plain = look(one);
    one.focus({ preventScroll: true, focusVisible: true });
    return { isNew, told: told(one), isSeen: visible(one) && isOn && focused !== plain };
  };
  const GROUPS = '[role=grid], [role=group], [role=listbox], table';
  const kind = (one) => [one.tagName, ...Object.keys(one.dataset).sort()].join();
  const areOfOne = (one, other) => kind(one) === kind(other) && one.closest(GROUPS)?.contains(other);
  /** The controls of a part that were not reached: neither they, nor the one of their group from which arrows lead to them. */
  const missed = (root, controls) => {
    const all = [...root.querySelectorAll(controls)].filter((one) => visible(one) && !one.disabled);
    const known = all.filter((one) => reached.has(one));
    const lists = [...reached].map((one) => one.getAttribute('aria-controls'));
    const isOfOne = (one) => one.role === 'option' ? lists.includes(one.closest('[role=listbox]')?.id)
      : one.type === 'radio' ? known.some(({ name }) => name === one.name)
      : one.tabIndex < 0 && known.some((other) => other.contains(one) || areOfOne(one, other));
    return all.filter((one) => !reached.has(one) && !isOfOne(one) && !/^H[1-6]$/.test(one.tagName)).map(told);
  };
  /** What shows a hand and is no control. */
  const hands = (root, controls) => [...root.querySelectorAll('*')].filter((one) => {
    if (getComputedStyle(one).cursor !== 'pointer' || !visible(one)) return false;
    return !one.closest(`${controls}, label, option`) && !one.querySelector(controls);
  }).map(told);
  /** The controls of a part that stand for a group, others of which are reached by arrows. */
  let groups = [];
  const groupsOf = (root) => {
    const quiet = [...root.querySelectorAll('[tabindex="-1"]')].filter((one) => visible(one) && !one.disabled);
    groups = [...reached].filter((one) =>
      root.contains(one) && one.tabIndex >= 0 && quiet.some((other) => areOfOne(other, one)));
    return groups.length;
  };
  return {
    step, missed, hands, groups: groupsOf,
    start: () => [reached, passed].forEach((one) => one.clear()),
    turn: () => {
      [...reached].at(-1)?.focus();
      passed.clear();
    },
    enter: (index) => groups[index].focus(),
    hasLeft: (index) => ![document.body, groups[index]].includes(document.activeElement),
    nameOf: (index) => told(groups[index]),
  };
})()"""
"""Follows the focus: what it has reached, whether it is seen, and what it has missed."""

MOTION = """(() => {
  window.moved = [];
  const watch = () => {
    for (const one of document.getAnimations()) {
      const { duration, iterations } = one.effect?.getComputedTiming() ?? {};
      if (typeof duration === 'number' && duration * iterations > 10)
        window.moved.push(`${one.transitionProperty ?? one.animationName} ${duration} ms: ${one.effect.target?.outerHTML}`);
    }
    for (const one of document.querySelectorAll('[data-vv=ghost]'))
      if (one.checkVisibility()) window.moved.push('the pointer that shows how to point');
    requestAnimationFrame(watch);
  };
  watch();
})()"""
"""Collects whatever moves by itself for longer than 10 ms."""
