import list from "../approved.json";

/** Says whether a package may be installed without a question. */
export function approved(name: string): boolean {
  return list.some((entry) => (entry.endsWith("/*") ? name.startsWith(entry.slice(0, -1)) : name === entry));
}
