import { withBase } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { h, onBeforeUnmount, onMounted, ref } from 'vue';
import './style.css';

/** The page that `npm run build` has made; it is no part of Vue, and loaded where it is shown. */
const Playground = {
  setup() {
    const place = ref();
    let leave = () => undefined;
    onMounted(async () => {
      const { mount } = await import(
        /* @vite-ignore */ withBase('/files/playground/playground.js')
      );
      leave = mount(place.value);
    });
    onBeforeUnmount(() => leave());
    return () => h('div', { ref: place, class: 'playground' });
  },
};

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => app.component('Playground', Playground),
};
