// Copying: browsers give their clipboard to pages of https only; elsewhere a text is marked and copied as by hand.

export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  (before?.closest("dialog") ?? document.body).append(field); // beside a dialog nothing can be marked
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus();
  if (!done) throw new Error("The browser does not let this page copy.");
}
