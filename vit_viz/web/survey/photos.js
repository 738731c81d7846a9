// The photos of the Survey tab in lists: as cards that open in Look, lit by the head one after the other.

import { routeUrl } from '../../explorer/source.js';
import { wholeAddress } from '../../ui/visit/link.js';
import { Toggle } from '../kit/parts.js';
import { html, useState } from '../kit/preact.js';
import { useMore } from './controls.js';
import { cardWords, groupsOf, LISTS, many, moreWords } from './words.js';
/** @import { State } from './state.js' */
/** @import { Card as Photo, GroupName, ListName } from './words.js' */

/** @typedef {{next?: string, shapes: Record<string, number>, came: (address: string, shape: number) => void}} Light see `useLight` */

/** @param {{state: State}} props */
export function Photos({ state }) {
  const { choice, chosen, lists, picked, beside, isBusy } = state;
  const { of, value } = chosen.value ?? {};
  const { lit, jump } = beside.value.value?.value ?? {};
  const list = choice.value?.list ?? 'high';
  /** @type {[GroupName | null, string, Photo[]][]} */
  const groups = value
    ? groupsOf(list, value.totals).map(([name, title]) => [name, title, lists.value?.[name] ?? []])
    : [];
  if (picked.value) groups.unshift([null, 'the dot that was chosen', [picked.value]]);
  const addressOf = (/** @type {Photo} */ { row }) =>
    routeUrl(`/vit_viz/survey/lit/${row}?layer=${of?.layer}&head=${of?.head}`);
  const lightable = groups.flatMap(([, , photos]) => photos.filter(({ there }) => there));
  const light = useLight(lit ? lightable.map(addressOf) : [], !isBusy.value);
  if (!of || !value) return null;
  const total = value.totals[list];
  const file = new URLSearchParams(/** @type {any} */ ({ ...of, list }));
  const choices = Object.entries(LISTS).map(([name, { title }]) => [name, title]);
  return html`<section class="vv-survey-lists vv-stack" aria-label="Photos">
    <${Toggle}
      ...${{ name: 'list', label: 'Which photos are listed', value: list, choose: state.list }}
      choices=${of.second ? choices : choices.slice(0, -1)}
    />
    <p class="vv-survey-list-words vv-small">${listWords(state, list, lit)}</p>
    ${jump && html`<p class="vv-small">${jump}</p>`}
    <div class="vv-survey-cards vv-stack">
      ${groups.map(
        ([name, title, photos]) =>
          html`<${Group}
            key=${name}
            ...${{ state, name, title, photos, light, addressOf }}
            total=${name ? value.totals[name] : 1}
          />`,
      )}
    </div>
    <div class="vv-row">
      ${
        total > 0 &&
        html`<a
          class="vv-button vv-survey-csv"
          download
          href=${routeUrl(`/vit_viz/survey/photos.csv?${file}`)}
          >Save ${many(total)} paths (CSV)</a
        >`
      }
      <${CopyLink} state=${state} />
    </div>
  </section>`;
}

/** What a list says of itself. @param {State} state @param {ListName} list @param {boolean} lit whether photos are lit by the head */
function listWords({ survey, chosen }, list, lit) {
  const { layer = 0, head = 0, measure, second = '' } = chosen.value?.of ?? {};
  const label = survey.measures.find(({ name }) => name === measure)?.label ?? '';
  if (list === 'elsewhere' && !(survey.has_boxes && survey.has_labels))
    return 'This list needs photos with labels and boxes.';
  if (list === 'changed' && !second) return 'This list needs a survey to compare with: choose one above.';
  const marks = lit
    ? 'Each photo is lit by what the head looks at, computed now; until then a ring marks the highest patch that the survey noted.'
    : 'The ring marks the highest patch of the head, as the survey noted it.';
  return `${LISTS[list].words({ label, layer, head, second })} ${marks}`;
}

/** Copies the address that opens the same photos again, also where another model has other defaults. @param {{state: State}} props */
function CopyLink({ state: { choice } }) {
  const { layer, head, where, across, up, measure, list } = /** @type {NonNullable<typeof choice.value>} */ (
    choice.value
  );
  const [copied, setCopied] = useState(/** @type {unknown} */ (null));
  const [link, setLink] = useState('');
  const copy = async () => {
    const address = new URL(wholeAddress());
    const said = { tab: 'survey', layer, head, where, across, up, of_heads: measure, photos: list };
    for (const [name, value] of Object.entries(said)) address.searchParams.set(name, String(value));
    await navigator.clipboard.writeText(address.href).then(
      () => setCopied(choice.value),
      () => setLink(address.href), // not every page may write to the clipboard
    );
  };
  const words = copied === choice.value ? 'Copied' : 'Copy link to these photos';
  return html`<button type="button" class="vv-button" onClick=${copy}>${words}</button>
    ${link && html`<span class="vv-small">${link}</span>`}`;
}

/**
 * Lights photos one after the other: what is next, and the width by the height of those that came, 0 of those that did not.
 * @param {string[]} addresses @param {boolean} goesOn while another answer is on its way, lit photos would keep the server from it
 * @returns {Light}
 */
function useLight(addresses, goesOn) {
  const [shapes, setShapes] = useState(/** @type {Record<string, number>} */ ({}));
  const next = goesOn ? addresses.find((address) => !(address in shapes)) : undefined;
  return { next, shapes, came: (address, shape) => setShapes((known) => ({ ...known, [address]: shape })) };
}

/**
 * Photos under a title, with a button for the next ones where the list is longer.
 * @param {{state: State, name: GroupName | null, title: string, photos: Photo[], total: number, light: Light, addressOf: (photo: Photo)
 *   => string}} props
 */
function Group({ state, name, title, photos, total, light, addressOf }) {
  const more = useMore(photos.length, () => name && state.goOn(name));
  const named = name === 'elsewhere' ? 'outside' : '';
  return html`<div class="vv-survey-group vv-stack" data-group=${name} ref=${more.box}>
    ${title && html`<h3 class="vv-small">${title}</h3>`}
    <div class="vv-survey-line">
      ${photos.map((photo) => {
        const lit = addressOf(photo);
        return html`<${Card} key=${photo.row} ...${{ photo, named, light, lit, open: state.open }} />`;
      })}
      ${!photos.length && html`<p class="vv-quiet">No photo.</p>`}
    </div>
    ${
      photos.length < total &&
      html`<button type="button" class="vv-button vv-plain vv-survey-more" onClick=${more.goOn}>
        ${moreWords(photos.length, total)}
      </button>`
    }
  </div>`;
}

/** A photo that opens in Look. @param {{photo: Photo, named: string, light: Light, lit: string, open: State['open']}} props */
function Card({ photo, named, light, lit, open }) {
  const { row, photo: name, there, right, change } = photo;
  const [answer, ...says] = cardWords(photo, named);
  // of an answer that changed, whether it is right now; null where that is neither
  const isRight = !change ? right : change.kind === 'other class' ? null : change.kind === 'wrong to right';
  return html`<button
    ...${{ type: 'button', class: 'vv-survey-card vv-bare', 'data-row': row }}
    data-changed=${change && ''}
    title=${there ? `Open ${name} in Look` : `${name}: its file is gone`}
    onClick=${() => open(row)}
  >
    <${Picture} ...${{ photo, light, lit }} />
    <span class="vv-survey-file">
      <span class="vv-survey-answer vv-class" data-right=${isRight === null ? null : String(isRight)}
        >${answer}</span
      >
      ${says.map((words) => html`<span class="vv-small vv-class">${words}</span>`)}
    </span>
  </button>`;
}

/**
 * A photo that is lit; before, its small picture with a ring, or words where none is kept: what is not there is not asked for.
 * @param {{photo: Photo, light: Light, lit: string}} props lit: the address of the lit photo
 */
function Picture({
  photo: {
    row,
    size: [height, width],
    peak,
    small,
    there,
  },
  light,
  lit,
}) {
  const [isGone, setGone] = useState(false);
  const shape = (there && light.shapes[lit]) || 0;
  const isLit = shape > 0;
  const ring = peak && { top: `${100 * peak[0]}%`, left: `${100 * peak[1]}%` };
  return html`<span class="vv-survey-stage" style=${{ aspectRatio: shape || width / height }}>
    ${
      (isLit || (there && light.next === lit)) &&
      html`<img
        key=${lit}
        ...${{ class: 'vv-survey-lit', alt: '', src: lit, hidden: !isLit }}
        onLoad=${(/** @type {any} */ { target }) => light.came(lit, target.naturalWidth / target.naturalHeight)}
        onError=${() => light.came(lit, 0)}
      />`
    }
    ${
      !isLit &&
      small &&
      html`<img
          ...${{ alt: '', loading: 'lazy', src: routeUrl(`/vit_viz/survey/thumbnail/${row}`) }}
          class=${isGone ? 'vv-gone' : ''}
          onError=${() => setGone(true)}
        />${ring && html`<span class="vv-survey-ring" style=${ring}></span>`}`
    }
    ${
      !isLit &&
      !small &&
      html`<span class="vv-survey-none vv-small">
        ${there ? 'no small picture was kept' : 'no picture: its file is gone'}
      </span>`
    }
  </span>`;
}
