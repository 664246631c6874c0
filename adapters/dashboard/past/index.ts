export type { Past, PastDashboard, PastDashboardOptions } from './past-dashboard.ts';
export { PastSamples } from './past-samples.ts';
