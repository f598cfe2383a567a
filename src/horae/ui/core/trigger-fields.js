// Kinds of timed triggers, each with its fields; the first field selects the kind. `python -m tools.sdk` writes this module from their tables.

export const TIMES = {
  cron: [
    {"name": "cron", "kind": "text", "default": null, "help": "Fire when the clock on the wall matches these five cron fields.", "example": "0 9 * * MON-FRI"},
    {"name": "timezone", "kind": "text", "default": "UTC", "help": "The time zone whose clock is meant.", "example": "Europe/Paris"},
    {"name": "dialect", "kind": "choice", "default": "unix", "help": "How cron fields are read.", "example": null, "words": ["unix", "quartz"]},
    {"name": "dstGap", "kind": "choice", "default": "shift", "help": "What becomes of a time that a clock change jumps over.", "example": null, "words": ["shift", "skip"]},
    {"name": "dstOverlap", "kind": "choice", "default": "first", "help": "Which of a time that comes twice.", "example": null, "words": ["first", "second", "both"]},
  ],
  every: [
    {"name": "every", "kind": "custom", "default": null, "help": "Fire again and again after so long.", "example": "5m"},
    {"name": "anchor", "kind": "moment", "default": null, "help": "An instant from which `every` counts; otherwise when it was made.", "example": null},
  ],
  at: [
    {"name": "at", "kind": "moment", "default": null, "help": "Fire once, at this instant.", "example": "2026-11-15T08:00:00Z"},
  ],
};
