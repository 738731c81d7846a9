// What the server tells the Explain tab's stage of a map, as tests begin with it.

/** Of a photo of 60 x 180 pixels, whose middle is cut into 4 x 6 patches. */
export const STAGED = {
  src: '/map/x',
  alt: 'A map.',
  caption: 'c',
  note: '',
  pick: false,
  area: [0, 0, 60, 180],
  rings: [],
  view: 'image=x',
  subject: 'image=x',
  key: 'k',
  target: '3',
  method: 'Rollout',
  shows: 'rollout',
  grid: [4, 6],
  region: [10, 30, 40, 120],
  photo_size: [60, 180],
  order: '7,3,20,1',
  whole: { words: 'whole', top: [] },
};
