// Holds the library to its declaration, for tsc alone.
import type * as declared from "@assent/permissions";
import * as library from "./index";

export const conforms: typeof declared = library;

type Missing = Exclude<keyof typeof declared, keyof typeof library>;
type Undeclared = Exclude<keyof typeof library, keyof typeof declared>;
export const same: [Missing, Undeclared] extends [never, never] ? true : false = true;
