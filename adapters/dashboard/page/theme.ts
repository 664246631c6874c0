/** From light to dark, or back, whatever the system prefers. */
export function switchTheme(): void {
  const { classList } = document.documentElement;
  const isDark =
    classList.contains('dark') ||
    (!classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches);
  classList.toggle('dark', !isDark);
  classList.toggle('light', isDark);
}
