export const landingPage = {};
