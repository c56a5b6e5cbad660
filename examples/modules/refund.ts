import { block, request, type PermissionsAPI } from "@assent/permissions";

const asks = 50_00; // cents
const most = 1_000_00;

export default function permissions(api: PermissionsAPI) {
  api.onToolUse({
    name: "refund",
    description: "Refunds move money.",
    matcher: "mcp__billing__refund",
    handler({ tool: { input } }) {
      const { amount, currency, customer } = input as Record<string, unknown>;
      // What cannot be understood is put to a person, not let through.
      if (typeof amount !== "number" || !Number.isInteger(amount) || currency !== "EUR") {
        return request({ guidance: "The amount is not one in cents of EUR. Look at the whole call." });
      }
      if (amount > most) return block("Refunds over 1000 EUR are made by the finance team: open a ticket for them.");
      if (amount < asks) return;
      return request({
        guidance: `${(amount / 100).toFixed(2)} EUR to ${String(customer)}`,
        highlight: [String(amount), JSON.stringify(customer) ?? ""],
        approveLabel: "Refund",
        rejectLabel: "Keep",
      });
    },
  });
}
