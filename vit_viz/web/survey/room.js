// The Survey tab: a filter, every head over the photos that pass, and those photos as dots and in lists.

import { routeUrl } from '../../explorer/source.js';
import { fixed, short } from '../../ui/kit/numbers.js';
import { headWords } from '../heads/words.js';
import { asker } from '../kit/ask.js';
import { thePage } from '../kit/page.js';
import { Problem, Toggle } from '../kit/parts.js';
import { html, render, useLayoutEffect, useMemo, useState } from '../kit/preact.js';
import { Heads } from './heads.js';
import { Chooser, Table, useMore } from './controls.js';
import { Photos } from './photos.js';
import { Scatter } from './scatter.js';
import { makeState, SOURCE } from './state.js';
import { columnWords, many, moreWords, OFTEN, PAGE } from './words.js';
/** @import { Ask } from '../kit/ask.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { ClassLine, Compared, Moved, Opened, State } from './state.js' */

/** @type {import('../../ui/kit/elements.js').Mount<{survey: Opened, tables: Record<string, string>}>} */
export function mount(element, { survey, tables }) {
  render(html`<${Survey} ...${{ page: thePage(), ask: asker(SOURCE), survey, tables }} />`, element);
}

const FACES = Object.entries({ heads: 'heads', dots: 'two numbers', tables: 'classes, methods' });

/** @param {{page: Page, ask: Ask, survey: Opened, tables: Record<string, string>}} props */
export function Survey({ page, ask, survey, tables }) {
  const state = useMemo(() => makeState(page, ask, survey), []);
  const [face, setFace] = useState('heads');
  if (!state.choice.value) return null; // its tab was not open yet
  return html`<div
    class="vv-survey"
    data-shows=${face}
    data-waits=${state.isBusy.value && !state.chosen.value ? '' : undefined}
    data-stale=${state.refusal.value ? '' : undefined}
  >
    <div class="vv-survey-head vv-stack">
      <${Head} state=${state} />
      <${Comparison} state=${state} />
    </div>
    <${Photos} state=${state} />
    <${Toggle}
      ...${{ name: 'face', choices: FACES, value: face, choose: setFace, look: 'vv-survey-faces' }}
      label="What is shown below the photos"
    />
    <${Heads} state=${state} tables=${tables} />
    <${Scatter} state=${state} />
    <${Classes} state=${state} />
    <${Methods} state=${state} />
    <${Filter} state=${state} />
  </div>`;
}

// --- which photos

/** What the survey is of, and filters that are often asked for. @param {{state: State}} props */
function Head({ state }) {
  const { survey, choice, brush, compared, comparing, chosen, beside, filter, compareWith } = state;
  const { where = '' } = choice.value ?? {};
  const { typed } = brush.value;
  const { name, isRunning } = comparing.value;
  const note = beside.value.error ?? beside.value.value?.value.note;
  return html`<div class="vv-row">
      <h2 class="vv-title">${many(survey.photos)} photos through ${survey.model}</h2>
      ${
        survey.others.length > 0 &&
        html`<${Chooser}
          ...${{ words: 'compared with', look: 'second', choose: compareWith }}
          value=${(isRunning ? name : compared.value?.name) ?? ''}
          options=${[['', 'no other survey'], ...survey.others.map((other) => [other, other])]}
        />`
      }
    </div>
    <div class="vv-survey-chips vv-row" role="group" aria-label="Filters that are often asked for">
      ${OFTEN.filter(([, , needs]) => survey[needs]).map(([words, often]) => {
        const isOn = often === typed;
        const choose = () => filter(isOn ? '' : often);
        return html`<button type="button" class="vv-chip" aria-pressed=${String(isOn)} onClick=${choose}>
          ${words}
        </button>`;
      })}
      ${where && html`<button type="button" class="vv-button vv-plain vv-survey-clear" onClick=${() => filter('')}>Show all</button>`}
    </div>
    <${Problem} words=${state.refusal.value ? '' : state.error.value} look="vv-survey-failure vv-error" />
    <p class="vv-survey-count vv-number" role="status">${chosen.value && countWords(state)}</p>
    ${note && html`<p class="vv-small">${note}</p>`}`;
}

/** A filter of one's own, and what it can name. @param {{state: State}} props */
function Filter({ state: { survey, choice, refusal, field, filter } }) {
  const { where = '' } = choice.value ?? {};
  useLayoutEffect(() => {
    const node = field.current;
    if (node && document.activeElement !== node) node.value = where; // else somebody is writing there
  }, [where]);
  const apply = (/** @type {Event} */ event) => {
    event.preventDefault();
    // on one line; within quotes spaces are part of a label
    const text =
      field.current?.value.replace(/('[^']*'|"[^"]*")|\s+/g, (_, quoted) => quoted ?? ' ').trim() ?? '';
    if (text !== where) filter(text);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && !event.isComposing) apply(event);
  };
  return html`<section class="vv-survey-filters vv-stack" aria-label="A filter of your own">
    <h3 class="vv-title">Which photos, by a filter of your own</h3>
    <form class="vv-survey-filter vv-row" onSubmit=${apply}>
      <label class="vv-survey-label" for="vv-survey-where">WHERE</label>
      <textarea
        id="vv-survey-where"
        class="vv-survey-where vv-control"
        ...${{ rows: 1, maxlength: 4000, spellcheck: false, autocomplete: 'off' }}
        placeholder="every photo; or, for example: not is_right and confidence > 0.5"
        aria-invalid=${String(Boolean(refusal.value))}
        ref=${field}
        onKeyDown=${pressed}
      ></textarea>
      <button type="submit" class="vv-button">Filter</button>
    </form>
    <${Problem} words=${refusal.value} look="vv-survey-error vv-error" />
    <${Columns} columns=${survey.columns} />
  </section>`;
}

/** How many photos pass, and how many of those are right; of a filter that is refused, that it is of the one before. @param {State} state */
function countWords({ chosen, survey, refusal }) {
  const { count, labelled, accuracy } = /** @type {NonNullable<typeof chosen.value>} */ (chosen.value).value;
  const all = `${count === survey.photos ? 'All' : `${many(count)} of`} ${many(survey.photos)} photos`;
  const labels = labelled === count ? '' : ` of the ${many(labelled)} with a label`;
  const right =
    accuracy === null
      ? 'of none is it known whether the answer is right.'
      : `${(100 * accuracy).toFixed(1)}%${labels} are right.`;
  return `${refusal.value ? 'Still of the filter before: ' : ''}${all}; ${right}`;
}

/** @param {{columns: Opened['columns']}} props */
function Columns({ columns }) {
  const rows = columns.map(({ name, unit, meaning, words }) => [
    [words.join(', '), words[0] !== name && html`<code>${name}</code>`],
    unit ? `${meaning} (${unit})` : meaning,
  ]);
  return html`<details class="vv-survey-columns">
    <summary class="vv-small">What a filter can name</summary>
    <p class="vv-small">
      SQL of one photo: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, arithmetic, a few functions
      such as abs, least and lower; inside(x, y, '0 0, 1 0, 1 1') is a polygon. Columns go by the words that
      this tab shows, such as mean entropy, or by the name beside them.
    </p>
    <${Table} look="vv-survey-names" label="Columns" rows=${rows} />
  </details>`;
}

// --- a second survey

/** What the two say together, and the heads that moved. @param {{state: State}} props */
function Comparison({ state: { compared: told, comparing, head } }) {
  const compared = told.value;
  const { name, isRunning, error } = comparing.value;
  const refusal = error && `Not compared with ${name}. ${error}`;
  const title = isRunning ? `Comparing with ${name} …` : compared && findingWords(compared);
  const chance = ' p: how likely so uneven a split is where both are equally good.';
  const about = [compared?.note, compared?.accuracy].filter(Boolean).join(' ');
  return html`<section
    class="vv-survey-compared"
    aria-label="Comparison"
    aria-busy=${String(isRunning)}
    hidden=${!title && !refusal}
  >
    <div class="vv-stack">
      <${Problem} words=${refusal} look="vv-survey-compared-error vv-error" />
      ${title && html`<h3 class="vv-title vv-survey-compared-title">${title}</h3>`}
      ${about && html`<p>${about}</p>`}
      ${compared?.heads && html`<p class="vv-survey-compared-heads">${compared.heads}</p>`}
      ${
        compared &&
        html`<p class="vv-small">
          ${`Before: this survey. After: ${compared.name}, through ${compared.model}. Over all photos that both could read, whatever the filter.${compared.accuracy && chance}`}
        </p>`
      }
    </div>
    ${compared && compared.moved.length > 0 && html`<${HeadsThatMoved} key=${compared.name} ...${{ compared, head }} />`}
  </section>`;
}

/** How many photos have another answer in the second survey. @param {Compared} compared */
export function findingWords({ name, photos, changed }) {
  if (changed === null) return `Compared with ${name}: ${many(photos)} photos`;
  return `Compared with ${name}: ${many(changed)} of ${many(photos)} photos changed their answer`;
}

const MOVED = ['head', 'statistic', 'mean before, after', 'mean difference (95% interval)', 'effect'];

/** @param {{compared: Compared, head: State['head']}} props */
function HeadsThatMoved({ compared: { name, moved }, head }) {
  const [most, setMost] = useState(PAGE);
  const shown = moved.slice(0, most);
  const more = useMore(shown.length, () => setMost(most + PAGE));
  const signed = (/** @type {number} */ value) => `${value > 0 ? '+' : ''}${short(value)}`;
  const line = (/** @type {Moved} */ one) => [
    html`<button
      ...${{ type: 'button', class: 'vv-survey-class vv-bare', title: 'Choose this head' }}
      data-moved=${`${one.layer}/${one.head}/${one.statistic}`}
      onClick=${() => head(one, one.statistic)}
    >
      ${headWords(one)}
    </button>`,
    `${one.words} (${one.unit})`,
    `${short(one.before)} to ${short(one.after)}`,
    `${signed(one.difference)} (${signed(one.low)} to ${signed(one.high)})`,
    one.effect === null ? 'alike in all photos' : signed(one.effect),
  ];
  const file = routeUrl(`/vit_viz/survey/heads.csv?${new URLSearchParams({ second: name })}`);
  return html`<div class="vv-survey-moved vv-stack" ref=${more.box}>
    <${Table} look="vv-survey-moved-table" label="Heads that moved" heads=${MOVED} rows=${shown.map(line)} />
    <p class="vv-small">
      The largest effect first: the mean difference in standard deviations of the photos' own differences.
    </p>
    <div class="vv-row">
      ${
        most < moved.length &&
        html`<button type="button" class="vv-button vv-plain" onClick=${more.goOn}>
          ${moreWords(most, moved.length)}
        </button>`
      }
      <a class="vv-button" download href=${file}>Save ${many(moved.length)} changes of heads (CSV)</a>
    </div>
  </div>`;
}

// --- classes and methods

/** Count, accuracy and means of every class; the name filters by it. @param {{state: State}} props */
function Classes({ state: { chosen, filter } }) {
  const { classes = [] } = chosen.value?.value ?? {};
  if (!classes.length) return null;
  const known = Object.keys(classes[0].means).filter((name) =>
    classes.some(({ means }) => means[name] !== null),
  );
  const line = (/** @type {ClassLine} */ { label, photos, accuracy, means }) => [
    html`<button
      ...${{ type: 'button', class: 'vv-survey-class vv-bare', title: `Filter by ${label}` }}
      onClick=${() => filter(`label = '${label.replaceAll("'", "''")}'`)}
    >
      ${label}
    </button>`,
    photos,
    accuracy === null ? '' : `${(100 * accuracy).toFixed(0)}%`,
    ...known.map((name) => (means[name] === null ? '' : short(means[name]))),
  ];
  return html`<section class="vv-survey-classes vv-stack" aria-label="Classes">
    <h3 class="vv-title">By class</h3>
    <${Table}
      ...${{ look: 'vv-survey-class-table', label: 'Table of classes', rows: classes.map(line) }}
      heads=${['label', 'photos', 'right', ...known.map(columnWords)]}
    />
  </section>`;
}

/** What each method scores, with intervals. @param {{state: State}} props */
function Methods({ state: { methods } }) {
  const { value: answer, error } = methods.value;
  /** @type {{lines?: Record<string, Record<string, Record<'mean' | 'low' | 'high', number>>>, scores?: Record<string, string>, conclusion?: string, resamples?: number}} */
  const { lines = {}, scores = {}, conclusion = error, resamples } = answer?.value ?? {};
  const known = Object.keys(scores).filter((score) => Object.values(lines).some((line) => line[score]));
  const rows = Object.entries(lines).map(([method, line]) => [
    method,
    ...known.map((score) => {
      const { mean, low, high } = line[score] ?? {};
      return line[score] && `${fixed(mean, 2)} (${fixed(low, 2)} to ${fixed(high, 2)})`;
    }),
  ]);
  const hasChance = known.includes('insertion') || known.includes('deletion');
  return html`<section class="vv-survey-methods vv-stack" aria-label="Methods">
    <h3 class="vv-title">Which map to trust here</h3>
    <p class="vv-survey-conclusion">${conclusion}</p>
    ${
      rows.length > 0 &&
      html`<${Table}
          ...${{ look: 'vv-survey-method-table', label: 'Table of methods', rows }}
          heads=${['method', ...known.map((score) => scores[score])]}
        />
        <p class="vv-small">
          ${`Means with 95% intervals from ${resamples} bootstrap samples of the photos; higher is better${hasChance ? '; in insertion and deletion 0 is chance' : ''}.`}
        </p>`
    }
  </section>`;
}
