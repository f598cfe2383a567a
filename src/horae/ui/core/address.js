// Addresses of the API.

export const API = "/api/v1";

const path = (given, params) => {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of [value].flat()) kept.append(name, one);
  }
  const text = kept.toString();
  return `${given.startsWith("/") ? "" : "/"}${given}${text ? `${given.includes("?") ? "&" : "?"}${text}` : ""}`;
};

export const address = (given, params) => (given.startsWith(API) ? "" : API) + path(given, params);
