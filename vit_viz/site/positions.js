// What a model has of positions, as vit_viz/ui/opened.py says it.

import { noPositions, positionedPrefix, prefixOf, trainedGrid } from '../browser/config.js';
/** @import { Config } from '../browser/config.js' */

/** The questions that it answers, its own grid, the prefix tokens that have a position, and why there are none to compare. @param {Config} config */
export function positionsOf(config) {
  const { position: kind } = config;
  const hasTable = ['learned', 'sinusoidal_1d', 'sinusoidal_2d'].includes(kind);
  const questions = [
    ...(hasTable || kind === 'rotary' ? ['positions'] : []),
    ...(kind === 'learned' ? ['resampling'] : []),
    ...(kind === 'rotary' ? ['rotary_similarity'] : []),
    ...(hasTable ? ['position_components'] : []),
    'filter_components',
  ];
  const isZero = kind === 'sinusoidal_2d'; // whose waves begin behind the prefix
  const prefix = isZero ? [] : prefixOf(config).slice(0, positionedPrefix(config));
  return { questions, grid: trainedGrid(config), prefix, why: noPositions(config) };
}
