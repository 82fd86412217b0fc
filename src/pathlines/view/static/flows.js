// @ts-check
/** Flows: the density that pieces carry a Gaussian to, on the line or in the plane. */
import { there } from './pages.js';
import { draw, sheet } from './sheet.js';

sheet('flows', async (data) => {
  await draw({ density: data.density, map: data.map });
  (await there('#finding')).innerHTML = data.finding;
});
