/** Repairs of the theme of VitePress, for readers who do not see it or do not use a mouse. */
import { basename } from 'node:path';

/** By component: a text of its source, and the text that takes its place. */
const REPAIRS = {
  // A button within a button: the heading of a group opens and closes it, and says whether it is open.
  'VPSidebarItem.vue': [
    [':role="itemRole"', ':role="itemRole" :aria-expanded="item.items ? !collapsed : undefined"'],
    [
      /role="button"\s+aria-label="toggle section"\s+@click="onCaretClick"\s+@keydown.enter="onCaretClick"\s+tabindex="0"/,
      'aria-hidden="true"',
    ],
  ],
  // The name of a button says what is written on it, and this key is a picture.
  'VPNavBarSearchButton.vue': [['Key">K</kbd>', 'Key" data-key="K"></kbd>']],
  // The search is a dialog with a list of links, and neither a button nor links within options.
  'VPLocalSearchBox.vue': [
    [
      /role="button"\s+:aria-owns="[^"]*"\s+aria-expanded="true"\s+aria-haspopup="listbox"\s+aria-labelledby="[^"]*"/,
      'role="dialog" aria-modal="true" :aria-label="buttonText"',
    ],
    [
      /:id="'localsearch-item-' \+ index"\s+:aria-selected="[^"]*"\s+role="option"/,
      'role="presentation"',
    ],
    [
      /:aria-label="\[\.\.\.p\.titles, p\.title\]\.join\(' > '\)"/,
      `:id="'localsearch-item-' + index" :aria-selected="selectedIndex === index" role="option"`,
    ],
    [/<kbd :aria-label/g, '<kbd role="img" :aria-label'],
  ],
  'VPHome.vue': [['class="VPHome"', 'class="VPHome" role="main"']],
  'NotFound.vue': [['class="NotFound"', 'class="NotFound" role="main"']],
  'VPLocalNav.vue': [[':class="classes"', ':class="classes" role="navigation" aria-label="Page"']],
};

/** A plugin of Vite. It fails when a release of VitePress has changed what is repaired. */
export const repairFrame = {
  name: 'repair-frame',
  enforce: 'pre',
  transform(code, id) {
    if (!id.includes('/theme-default/')) return null;
    return (REPAIRS[basename(id)] ?? []).reduce((text, [from, to]) => {
      const repaired = text.replace(from, () => to);
      if (repaired === text) throw new Error(`${id} has no ${from} any more`);
      return repaired;
    }, code);
  },
};
