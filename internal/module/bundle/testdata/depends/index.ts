import { matchTool, type PermissionsAPI, request } from "@assent/permissions";
import { isRelease } from "@acme/tags";
import suffix from "@acme/tags/marks/suffix";
import { first } from "tiny-list";
import about from "./about.json";
import { words } from "./lib/words.js";

export default function permissions(api: PermissionsAPI) {
  api.onToolUse({
    name: "release tag",
    description: about.description,
    matcher: "bash",
    handler: ({ tool }) =>
      matchTool(tool, {
        bash({ command }) {
          const tag = first(words(command).filter(isRelease));
          if (tag !== undefined) return request({ guidance: `${tag}${suffix}`, highlight: tag });
        },
      }),
  });
}
