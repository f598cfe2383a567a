// Kinds of timed triggers, each with its fields; the first field selects the kind. `python -m tools.sdk` writes this module from their tables.

export const TIMES = {
  cron: [
    {"name": "cron", "kind": "text", "default": null, "help": "Fire when the local time matches these five cron fields.", "example": "0 9 * * MON-FRI"},
    {"name": "timezone", "kind": "text", "default": "UTC", "help": "The time zone of the cron fields.", "example": "Europe/Paris"},
    {"name": "dialect", "kind": "choice", "default": "unix", "help": "The dialect of the cron fields.", "example": null, "words": ["unix", "quartz"]},
    {"name": "dstGap", "kind": "choice", "default": "shift", "help": "The policy for a time that a clock change skips.", "example": null, "words": ["shift", "skip"]},
    {"name": "dstOverlap", "kind": "choice", "default": "first", "help": "The policy for a time that occurs twice.", "example": null, "words": ["first", "second", "both"]},
  ],
  every: [
    {"name": "every", "kind": "custom", "default": null, "help": "Fire repeatedly at this interval.", "example": "5m"},
    {"name": "anchor", "kind": "moment", "default": null, "help": "The instant from which `every` counts; its creation by default.", "example": null},
  ],
  at: [
    {"name": "at", "kind": "moment", "default": null, "help": "Fire once, at this instant.", "example": "2026-11-15T08:00:00Z"},
  ],
};
