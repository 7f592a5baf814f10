// What is asked of a page at once. Runs inside it, past its content security policy, and changes nothing.

const CONTROLS = [
  'a[href]', 'button', 'input:not([type=hidden])', 'select', 'textarea', 'summary', '[contenteditable=true]',
  '[role=button]', '[role=link]', '[role=checkbox]', '[role=switch]', '[role=tab]', '[role=menuitem]',
].join(',');

const seen = (element) => element.checkVisibility({ visibilityProperty: true });

function path(element) {
  const steps = [];
  for (let own = element; own && own !== document.body && steps.length < 4; own = own.parentElement) {
    if (own.id) {
      steps.unshift(`#${own.id}`);
      break;
    }
    const twins = [...(own.parentElement?.children ?? [])].filter((other) => other.tagName === own.tagName);
    const nth = twins.length > 1 ? `:nth-of-type(${twins.indexOf(own) + 1})` : '';
    steps.unshift(own.tagName.toLowerCase() + [...own.classList].map((name) => `.${name}`).join('') + nth);
  }
  return steps.join(' > ') || element.tagName.toLowerCase();
}

function scrollsByItself(element) {
  for (let around = element.parentElement; around && around !== document.body; around = around.parentElement) {
    if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(around).overflowX)) return true;
  }
  return false;
}

// Not measured by innerWidth: a phone zooms out until everything fits, and that grows with it.
function overflow() {
  const root = document.documentElement;
  const width = root.clientWidth;
  if (root.scrollWidth <= width) return null;
  const edge = (element) => element.getBoundingClientRect().left + scrollX + element.scrollWidth;
  const candidates = [...document.body.querySelectorAll('*')].filter((one) => seen(one) && !scrollsByItself(one));
  const beyond = (element) => element.getBoundingClientRect().right + scrollX > width + 0.5;
  // A box that is too wide itself; otherwise the innermost one whose content runs out of it.
  const culprit = candidates.find(beyond) ?? candidates.findLast((one) => edge(one) > width + 0.5);
  const name = culprit ? path(culprit) : 'the page itself';
  return `${name} (the page is ${root.scrollWidth} wide, the screen ${width})`;
}

// [element, path, whether nothing but a placeholder names it] of every control that a person can reach.
function controls() {
  const reachable = [...document.querySelectorAll(CONTROLS)]
    .filter((one) => seen(one) && !one.closest('[aria-hidden=true], [inert]'));
  const named = (one) => one.labels?.length || one.title || one.hasAttribute('aria-label')
    || one.hasAttribute('aria-labelledby');
  return reachable.map((one) => [one, path(one), Boolean(one.placeholder) && !named(one)]);
}
